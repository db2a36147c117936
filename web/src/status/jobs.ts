/** Jobs of the service and their progress. */

import { useEffect } from "react";
import { api, getJobEventsUrl } from "../api/client";
import type { Job } from "../api/types";
import type { JobKind } from "../api/client";
import { createStore, useStore } from "../base/store";
import { refreshCollection } from "../shell/collection";
import { notify } from "../base/notifications";
import { upsertJob } from "./job-list";

export const jobs = createStore<readonly Job[]>([]);
/** True once the jobs have been requested. */
export const jobsLoaded = createStore(false);
const eventSources = new Map<number, EventSource>();
const RETRY_DELAY = 3000;

export const JOB_NAMES: Record<JobKind, string> = {
  scan: "Looking for files",
  train: "Learning",
  apply: "Suggesting",
  tidy: "Comparing labels",
  compare: "Comparing models",
  map: "Drawing the map",
  index: "Indexing",
};

export function isActive(job: Job): boolean {
  return job.state === "waiting" || job.state === "running";
}

function updateJob(job: Job): void {
  const previous = jobs.get().find((knownJob) => knownJob.id === job.id);
  jobs.set((list) => upsertJob(list, job));
  if (!isActive(job)) {
    eventSources.get(job.id)?.close();
    eventSources.delete(job.id);
    const hasEnded = previous !== undefined && isActive(previous);
    if (hasEnded) notify(job.state === "failed" ? `${JOB_NAMES[job.kind]} failed: ${job.error ?? ""}` : `${JOB_NAMES[job.kind]}: ${job.state}.`);
    if (hasEnded || (!previous && jobsLoaded.get())) refreshCollection(); // on this page or another one
  } else followJob(job.id);
}

function followJob(id: number): void {
  if (eventSources.has(id)) return;
  const events = new EventSource(getJobEventsUrl(id));
  eventSources.set(id, events);
  events.addEventListener("job", (event) => updateJob(JSON.parse((event as MessageEvent<string>).data) as Job));
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
    events.close();
    eventSources.delete(id);
    setTimeout(() => void refreshJobs(), RETRY_DELAY);
  };
}

export async function refreshJobs(): Promise<void> {
  try {
    const response = await api.listJobs();
    response.jobs.forEach(updateJob);
  } catch {
    // The page works without jobs.
  } finally {
    jobsLoaded.set(true);
  }
}

/** Reload the jobs when the page becomes visible; other pages start jobs, too. */
export function watchJobs(): () => void {
  const handleVisibility = (): void => {
    if (!document.hidden) void refreshJobs();
  };
  document.addEventListener("visibilitychange", handleVisibility);
  return () => document.removeEventListener("visibilitychange", handleVisibility);
}

export async function startJob(kind: JobKind, options: Record<string, unknown> = {}): Promise<void> {
  try {
    updateJob(await api.startJob(kind, options));
  } catch (error) {
    notify((error as Error).message);
  }
}

export async function stopJob(id: number): Promise<void> {
  try {
    updateJob(await api.stopJob(id));
  } catch (error) {
    notify((error as Error).message);
  }
}

export function useJobs(): readonly Job[] {
  useEffect(() => void refreshJobs(), []);
  return useStore(jobs);
}

/** Return the progress of a job from 0 to 1; null if unknown. */
export function getProgress(job: Job): number | null {
  const { completed, total } = job.progress;
  return completed !== undefined && total ? Math.min(1, completed / total) : null;
}
