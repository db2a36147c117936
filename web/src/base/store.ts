/** A value that several components look at. */

import { useSyncExternalStore } from "react";

export interface Store<T> {
  get: () => T;
  set: (next: T | ((old: T) => T)) => void;
  subscribe: (listener: () => void) => () => void;
}

export function store<T>(first: T): Store<T> {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      const now = typeof next === "function" ? (next as (old: T) => T)(value) : next;
      if (Object.is(now, value)) return;
      value = now;
      listeners.forEach((listener) => listener());
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>(of: Store<T>): T {
  return useSyncExternalStore(of.subscribe, of.get);
}
