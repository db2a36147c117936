/** A made-up collection behind the API, for working on the pages without the service. Never part of a build. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import { answer } from "./collection.ts";

export function fake(): Plugin {
  const handle = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const url = new URL(request.url ?? "/", "http://fake");
    if (!url.pathname.startsWith("/api/") && url.pathname !== "/openapi.json") {
      next();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("latin1");
      const given = (request.headers["content-type"] ?? "").includes("json") && text ? (JSON.parse(text) as unknown) : null;
      const { status, type, body } = answer(request.method ?? "GET", url, given);
      response.writeHead(status, { "content-type": type });
      response.end(body);
    });
  };
  return {
    name: "fake-service",
    apply: "serve",
    configureServer: (server) => void server.middlewares.use(handle),
    configurePreviewServer: (server) => void server.middlewares.use(handle),
  };
}
