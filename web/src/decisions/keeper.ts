/** Keeps waiting steps in the browser: each page has its own list, and takes over those of pages that are gone. */

import type { Keeper, Step } from "./queue";

const PREFIX = "wsabie.waiting.";
const GONE = 180_000; // a page in the background may be asleep for a minute

interface Kept {
  beat: number;
  steps: Step[];
}

export function pageKeeper(page: string, storage: Storage, now: () => number = Date.now): Keeper {
  const key = PREFIX + page;
  return {
    read: () => parse(storage.getItem(key))?.steps ?? [],
    write: (steps) => {
      try {
        if (steps.length) storage.setItem(key, JSON.stringify({ beat: now(), steps }));
        else storage.removeItem(key);
      } catch {
        // A full or closed storage: they stay in memory, and the page warns before it is left.
      }
    },
  };
}

/** The steps of pages that have been silent for minutes; they are this page's from now on. */
export function orphans(page: string, storage: Storage, now: () => number = Date.now): Step[] {
  const found: Step[] = [];
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i)).filter(
    (key): key is string => key !== null && key.startsWith(PREFIX) && key !== PREFIX + page,
  );
  for (const key of keys) {
    const kept = parse(storage.getItem(key));
    if (kept && now() - kept.beat < GONE) continue;
    storage.removeItem(key);
    found.push(...(kept?.steps ?? []));
  }
  return found;
}

function parse(text: string | null): Kept | null {
  if (!text) return null;
  try {
    const kept = JSON.parse(text) as Kept;
    return Array.isArray(kept.steps) ? kept : null;
  } catch {
    return null;
  }
}
