import { expect, it, vi } from "vitest";
import type { Job } from "../api/types";

let jobs: Job[] = [];
const refreshCollection = vi.hoisted(() => vi.fn());
vi.mock("../api/client", () => ({ api: { listJobs: () => Promise.resolve({ jobs }) }, getJobEventsUrl: String }));
vi.mock("../shell/collection", () => ({ refreshCollection }));
vi.stubGlobal("EventSource", class {
  addEventListener(): void {}
  close(): void {}
});

const { refreshJobs } = await import("./jobs");
const { notification } = await import("../base/notifications");
const job = (id: number, state: Job["state"]): Job => ({
  id, kind: "train", state, by: "eve", options: {}, progress: {}, result: null, error: null, requested_at: "", started_at: null, ended_at: null,
});

it("what was done elsewhere has pages ask again, but not what was done before they were opened", async () => {
  jobs = [job(1, "done")];
  await refreshJobs();
  await refreshJobs();
  expect(refreshCollection).not.toHaveBeenCalled();
  jobs = [job(2, "done"), job(1, "done")];
  await refreshJobs();
  expect(refreshCollection).toHaveBeenCalledTimes(1);
  expect(notification.get()).toBeNull();
  jobs = [job(3, "running"), ...jobs];
  await refreshJobs();
  expect(refreshCollection).toHaveBeenCalledTimes(1);
  jobs = [job(3, "done"), ...jobs.slice(1)];
  await refreshJobs();
  expect(refreshCollection).toHaveBeenCalledTimes(2);
  expect(notification.get()?.text).toBe("Learning: done.");
});
