import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { fake } from "./fake/plugin.ts";

const service = process.env["WSABIE_SERVICE"]; // http://127.0.0.1:8420; without it a made-up collection answers

export default defineConfig({
  plugins: [react(), ...(service ? [] : [fake()])],
  build: {
    outDir: "../src/wsabie/server/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000, // the page of the API is a chunk of its own
  },
  server: service ? { proxy: { "/api": service, "/openapi.json": service } } : {},
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
