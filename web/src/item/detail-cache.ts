/** Cache of items with their labels, filled ahead for the next ones. */

import { useEffect, useSyncExternalStore } from "react";
import { api, getThumbnailUrl } from "../api/client";
import type { ItemDetails } from "../api/types";
import { refreshOverlay, queue } from "../decisions/decision-history";

const MAX_CACHED = 300;
let cache: ReadonlyMap<number, ItemDetails> = new Map();
const errors = new Map<number, Error>();
const requests = new Map<number, Promise<void>>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notifyListeners(): void {
  listeners.forEach((listener) => listener());
}

/** Fetch an item; one request at a time for each. */
export function fetchDetail(id: number): Promise<void> {
  const pendingRequest = requests.get(id);
  if (pendingRequest) return pendingRequest;
  const hadPending = queue.hasPending(id);
  const request = api
    .getItem(id)
    .then((item) => {
      if (!hadPending && !queue.hasPending(id)) refreshOverlay(item);
      cache = new Map([...[...cache].filter(([cachedId]) => cachedId !== id).slice(-MAX_CACHED), [id, item]]);
      errors.delete(id);
    })
    .catch((error: unknown) => {
      errors.set(id, error as Error);
    })
    .finally(() => {
      requests.delete(id);
      notifyListeners();
    });
  requests.set(id, request);
  return request;
}

/** Load an item and its picture ahead. */
export function prefetch(item: { id: number; hash: string | null }): void {
  if (!cache.has(item.id)) void fetchDetail(item.id);
  new Image().src = getThumbnailUrl(item, 1024);
}

/** Return an item, from the cache if possible; `refresh` loads it again. */
export function useDetail(id: number | null, refresh = false): { item: ItemDetails | null; error: Error | null } {
  const item = useSyncExternalStore(subscribe, () => (id === null ? null : (cache.get(id) ?? null)));
  const error = useSyncExternalStore(subscribe, () => (id === null ? null : (errors.get(id) ?? null)));
  useEffect(() => {
    if (id !== null && (refresh || !cache.has(id))) void fetchDetail(id);
  }, [id, refresh]);
  return { item, error };
}

/** Return all cached items. */
export function useDetails(): ReadonlyMap<number, ItemDetails> {
  return useSyncExternalStore(subscribe, () => cache);
}

/** Empty the cache; a new model has new suggestions. */
export function clearDetails(): void {
  cache = new Map();
  errors.clear();
  notifyListeners();
}
