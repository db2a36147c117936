import type { JobStatus } from "../api/types";

/** Put a job where it belongs in the list: the latest first. */
export function withJob(list: readonly JobStatus[], job: JobStatus): JobStatus[] {
  return [job, ...list.filter((other) => other.id !== job.id)].sort((a, b) => b.id - a.id);
}
