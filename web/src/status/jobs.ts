/** Long work of the service: which is under way, and how far it is. */

import { useEffect } from "react";
import { api, jobEvents } from "../api/client";
import type { JobStatus } from "../api/types";
import type { JobKind } from "../api/client";
import { store, useStore } from "../base/store";
import { collectionChanged } from "../shell/collection";
import { say } from "../base/saying";
import { withJob } from "./order";

export const jobs = store<readonly JobStatus[]>([]);
/** Whether they have been asked for: before that nobody knows how many there are. */
export const jobsKnown = store(false);
const followed = new Map<number, EventSource>();
const RETRY = 3000;

export const JOB_NAMES: Record<JobKind, string> = {
  scan: "Looking for files",
  train: "Learning",
  apply: "Suggesting",
  tidy: "Comparing labels",
  compare: "Comparing models",
  map: "Drawing the map",
  index: "Indexing",
};

export function underWay(job: JobStatus): boolean {
  return job.state === "waiting" || job.state === "running";
}

function note(job: JobStatus): void {
  const before = jobs.get().find((other) => other.id === job.id);
  jobs.set((list) => withJob(list, job));
  if (!underWay(job)) {
    followed.get(job.id)?.close();
    followed.delete(job.id);
    const ended = before !== undefined && underWay(before);
    if (ended) say(job.state === "failed" ? `${JOB_NAMES[job.kind]} failed: ${job.error ?? ""}` : `${JOB_NAMES[job.kind]}: ${job.state}.`);
    if (ended || (!before && jobsKnown.get())) collectionChanged(); // here, or on another page meanwhile
  } else follow(job.id);
}

function follow(id: number): void {
  if (followed.has(id)) return;
  const events = new EventSource(jobEvents(id));
  followed.set(id, events);
  events.addEventListener("job", (event) => note(JSON.parse((event as MessageEvent<string>).data) as JobStatus));
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return; // the stream was short, and the browser asks again
    events.close();
    followed.delete(id);
    setTimeout(() => void refreshJobs(), RETRY);
  };
}

export async function refreshJobs(): Promise<void> {
  try {
    const answer = await api.jobs();
    answer.jobs.forEach(note);
  } catch {
    // Without jobs the page shows the rest.
  } finally {
    jobsKnown.set(true);
  }
}

/** Others start work too: ask again when the page comes into sight. */
export function watchJobs(): () => void {
  const seen = (): void => {
    if (!document.hidden) void refreshJobs();
  };
  document.addEventListener("visibilitychange", seen);
  return () => document.removeEventListener("visibilitychange", seen);
}

export async function startJob(kind: JobKind, options: Record<string, unknown> = {}): Promise<void> {
  try {
    note(await api.startJob(kind, options));
  } catch (error) {
    say((error as Error).message);
  }
}

export async function stopJob(id: number): Promise<void> {
  try {
    note(await api.stopJob(id));
  } catch (error) {
    say((error as Error).message);
  }
}

export function useJobs(): readonly JobStatus[] {
  useEffect(() => void refreshJobs(), []);
  return useStore(jobs);
}

/** How far a job is, from 0 to 1; null where nobody knows. */
export function share(job: JobStatus): number | null {
  const { done, total } = job.progress;
  return done !== undefined && total ? Math.min(1, done / total) : null;
}
