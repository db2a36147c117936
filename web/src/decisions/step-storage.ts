/** Storage of pending steps in the browser; each page has a list, and takes over those of closed pages. */

import type { StepStorage, Step } from "./decision-queue";

const PREFIX = "wsabie.waiting.";
const ORPHAN_AGE = 180_000; // a page in the background may be asleep for a minute

interface StoredSteps {
  updatedAt: number;
  steps: Step[];
}

export function createPageStorage(pageId: string, storage: Storage, readClock: () => number = Date.now): StepStorage {
  const key = PREFIX + pageId;
  return {
    read: () => parse(storage.getItem(key))?.steps ?? [],
    write: (steps) => {
      try {
        if (steps.length) storage.setItem(key, JSON.stringify({ updatedAt: readClock(), steps }));
        else storage.removeItem(key);
      } catch {
        // Full or blocked storage: steps stay in memory, and the page warns before it is left.
      }
    },
  };
}

/** Take the steps of pages that have been silent for minutes. */
export function takeOrphans(pageId: string, storage: Storage, readClock: () => number = Date.now): Step[] {
  const steps: Step[] = [];
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i)).filter(
    (key): key is string => key !== null && key.startsWith(PREFIX) && key !== PREFIX + pageId,
  );
  for (const key of keys) {
    const stored = parse(storage.getItem(key));
    if (stored && readClock() - stored.updatedAt < ORPHAN_AGE) continue;
    storage.removeItem(key);
    steps.push(...(stored?.steps ?? []));
  }
  return steps;
}

function parse(text: string | null): StoredSteps | null {
  if (!text) return null;
  try {
    const stored = JSON.parse(text) as StoredSteps;
    return Array.isArray(stored.steps) ? stored : null;
  } catch {
    return null;
  }
}
