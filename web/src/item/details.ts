/** Items with their labels, kept for a while so that the next one is there before it is looked at. */

import { useEffect, useSyncExternalStore } from "react";
import { api, thumbnail } from "../api/client";
import type { ItemDetails } from "../api/types";
import { forgetOverlay, queue } from "../decisions/desk";

const MOST = 300;
let kept: ReadonlyMap<number, ItemDetails> = new Map();
const errors = new Map<number, Error>();
const asked = new Map<number, Promise<void>>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function note(): void {
  listeners.forEach((listener) => listener());
}

/** Ask for an item; once at a time. */
export function fetchDetail(id: number): Promise<void> {
  const running = asked.get(id);
  if (running) return running;
  const onItsWay = queue.touches(id);
  const run = api
    .item(id)
    .then((item) => {
      if (!onItsWay && !queue.touches(id)) forgetOverlay(id);
      kept = new Map([...[...kept].filter(([other]) => other !== id).slice(-MOST), [id, item]]);
      errors.delete(id);
    })
    .catch((error: unknown) => {
      errors.set(id, error as Error);
    })
    .finally(() => {
      asked.delete(id);
      note();
    });
  asked.set(id, run);
  return run;
}

/** Have an item and its picture there before it is looked at. */
export function prefetch(item: { id: number; hash: string | null }): void {
  if (!kept.has(item.id)) void fetchDetail(item.id);
  new Image().src = thumbnail(item, 1024);
}

/** An item; what is kept is shown at once, and asked again where `afresh`. */
export function useDetail(id: number | null, afresh = false): { item: ItemDetails | null; error: Error | null } {
  const item = useSyncExternalStore(subscribe, () => (id === null ? null : (kept.get(id) ?? null)));
  const error = useSyncExternalStore(subscribe, () => (id === null ? null : (errors.get(id) ?? null)));
  useEffect(() => {
    if (id !== null && (afresh || !kept.has(id))) void fetchDetail(id);
  }, [id, afresh]);
  return { item, error };
}

/** All items that are kept. */
export function useDetails(): ReadonlyMap<number, ItemDetails> {
  return useSyncExternalStore(subscribe, () => kept);
}

/** Forget what is kept: a new model has looked at everything. */
export function forgetDetails(): void {
  kept = new Map();
  errors.clear();
  note();
}
