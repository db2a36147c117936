import type { Job } from "../api/types";

/** Put a job where it belongs in the list: the latest first. */
export function withJob(list: readonly Job[], job: Job): Job[] {
  return [job, ...list.filter((other) => other.id !== job.id)].sort((a, b) => b.id - a.id);
}
