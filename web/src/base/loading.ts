/** Hooks that load data from the service into a component. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";

const RETRY_DELAY = 5000; // milliseconds

export interface LoadResult<T> {
  value: T | null;
  error: Error | null;
  isLoading: boolean;
  reload: () => void;
}

/**
 * Load data for a key; a new key loads again, and the old value stays until the new one has arrived, so that
 * pages do not flicker. Retries while the service is unreachable. Without a key nothing is loaded.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): LoadResult<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: Error | null }>({
    key: null,
    value: null,
    error: null,
  });
  const [attempt, setAttempt] = useState(0);
  const latestLoad = useRef(load);
  useEffect(() => {
    latestLoad.current = load;
  });
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    latestLoad
      .current(controller.signal)
      .then((value) => {
        if (!controller.signal.aborted) setState({ key, value, error: null });
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) setState((previous) => ({ ...previous, key, error: error as Error }));
      });
    return () => controller.abort();
  }, [key, attempt]);
  useEffect(() => {
    if (state.key !== key || !(state.error instanceof ApiError) || state.error.status !== 0) return;
    const timer = setTimeout(() => setAttempt((previous) => previous + 1), RETRY_DELAY);
    return () => clearTimeout(timer);
  }, [state, key]);
  return {
    value: key === null ? null : state.value,
    error: state.key === key ? state.error : null,
    isLoading: key !== null && state.key !== key,
    reload: () => setAttempt((previous) => previous + 1),
  };
}

/** Return a value once it has been stable for a while. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return debounced;
}
