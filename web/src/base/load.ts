/** Reading something from the service into a component. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";

const AGAIN_AFTER = 5000; // milliseconds

export interface Loaded<T> {
  value: T | null;
  error: Error | null;
  busy: boolean;
  again: () => void;
}

/**
 * What `load` gives for `key`; asked again when the key changes. What was there stays until the new is there, so that
 * pages do not flicker. Asked again by itself where the service cannot be reached. No key: nothing is asked.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: Error | null }>({
    key: null,
    value: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    latest
      .current(stop.signal)
      .then((value) => {
        if (!stop.signal.aborted) setState({ key, value, error: null });
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setState((old) => ({ ...old, key, error: error as Error }));
      });
    return () => stop.abort();
  }, [key, turn]);
  useEffect(() => {
    if (state.key !== key || !(state.error instanceof ApiError) || state.error.status !== 0) return;
    const timer = setTimeout(() => setTurn((old) => old + 1), AGAIN_AFTER);
    return () => clearTimeout(timer);
  }, [state, key]);
  return {
    value: key === null ? null : state.value,
    error: state.key === key ? state.error : null,
    busy: key !== null && state.key !== key,
    again: () => setTurn((old) => old + 1),
  };
}

/** A value once it has stayed the same for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
