import type { Job } from "../api/types";

/** Insert or replace a job in the list, latest first. */
export function upsertJob(list: readonly Job[], job: Job): Job[] {
  return [job, ...list.filter((listedJob) => listedJob.id !== job.id)].sort((a, b) => b.id - a.id);
}
