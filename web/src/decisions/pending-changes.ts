/** Storage of pending changes in the browser; each page has a list, and takes over those of closed pages. */

import type { ChangeStorage, PendingChange } from "./decision-queue";

const PREFIX = "wsabie.waiting.";
const ORPHAN_AGE = 180_000; // a page in the background may be asleep for a minute

interface StoredChanges {
  updatedAt: number;
  changes: PendingChange[];
}

export function createPageStorage(pageId: string, storage: Storage, readClock: () => number = Date.now): ChangeStorage {
  const key = PREFIX + pageId;
  return {
    read: () => parse(storage.getItem(key))?.changes ?? [],
    write: (changes) => {
      try {
        if (changes.length) storage.setItem(key, JSON.stringify({ updatedAt: readClock(), changes }));
        else storage.removeItem(key);
      } catch {
        // Full or blocked storage: changes stay in memory, and the page warns before it is left.
      }
    },
  };
}

/** Remove and return the changes of pages that have been silent for minutes. */
export function removeOrphans(pageId: string, storage: Storage, readClock: () => number = Date.now): PendingChange[] {
  const changes: PendingChange[] = [];
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i)).filter(
    (key): key is string => key !== null && key.startsWith(PREFIX) && key !== PREFIX + pageId,
  );
  for (const key of keys) {
    const stored = parse(storage.getItem(key));
    if (stored && readClock() - stored.updatedAt < ORPHAN_AGE) continue;
    storage.removeItem(key);
    changes.push(...(stored?.changes ?? []));
  }
  return changes;
}

function parse(text: string | null): StoredChanges | null {
  if (!text) return null;
  try {
    const stored = JSON.parse(text) as StoredChanges;
    return Array.isArray(stored.changes) ? stored : null;
  } catch {
    return null;
  }
}
