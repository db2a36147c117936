import { expect, it, vi } from "vitest";
import type { JobStatus } from "../api/types";

let told: JobStatus[] = [];
const changed = vi.hoisted(() => vi.fn());
vi.mock("../api/client", () => ({ api: { jobs: () => Promise.resolve({ jobs: told }) }, jobEvents: String }));
vi.mock("../shell/collection", () => ({ collectionChanged: changed }));
vi.stubGlobal("EventSource", class {
  addEventListener(): void {}
  close(): void {}
});

const { refreshJobs } = await import("./jobs");
const { said } = await import("../base/saying");
const job = (id: number, state: JobStatus["state"]): JobStatus => ({
  id, kind: "train", state, by: "eve", options: {}, progress: {}, result: null, error: null, requested_at: "", started_at: null, ended_at: null,
});

it("what was done elsewhere has pages ask again, but not what was done before they were opened", async () => {
  told = [job(1, "done")];
  await refreshJobs();
  await refreshJobs();
  expect(changed).not.toHaveBeenCalled();
  told = [job(2, "done"), job(1, "done")];
  await refreshJobs();
  expect(changed).toHaveBeenCalledTimes(1);
  expect(said.get()).toBeNull();
  told = [job(3, "running"), ...told];
  await refreshJobs();
  expect(changed).toHaveBeenCalledTimes(1);
  told = [job(3, "done"), ...told.slice(1)];
  await refreshJobs();
  expect(changed).toHaveBeenCalledTimes(2);
  expect(said.get()?.text).toBe("Learning: done.");
});
