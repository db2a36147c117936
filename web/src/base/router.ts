/** Router: path and query of the address, with working back navigation. */

import { useSyncExternalStore } from "react";

export type ParamChanges = Record<string, string | number | boolean | null | undefined>;

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

/** Go to an address; `replace` adds no entry to the browser's history. */
export function navigate(address: string, options: { replace?: boolean; state?: unknown } = {}): void {
  if (address === location.pathname + location.search) return;
  const state = options.replace ? history.state : (options.state ?? null);
  history[options.replace ? "replaceState" : "pushState"](state, "", address);
  listeners.forEach((listener) => listener());
}

/** Return a query with some values changed; empty and false ones are removed. */
export function applyChanges(search: string, changes: ParamChanges): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) params.delete(name);
    else params.set(name, value === true ? "1" : String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** Change the query of the current page. */
export function updateSearchParams(changes: ParamChanges, options: { replace?: boolean } = {}): void {
  navigate(location.pathname + applyChanges(location.search, changes), options);
}

const DIALOG_STATE = "dialog";

/** Open a dialog by a parameter, so that going back closes it. */
export function openDialog(name: string, value: string | number): void {
  const replace = new URLSearchParams(location.search).has(name);
  navigate(location.pathname + applyChanges(location.search, { [name]: value }), { replace, state: DIALOG_STATE });
}

/** Close a dialog: go back, or remove the parameter of a typed address. */
export function closeDialog(name: string): void {
  if (history.state === DIALOG_STATE) history.back();
  else updateSearchParams({ [name]: null }, { replace: true });
}

/** Return the gallery's address for a label. */
export function buildGalleryAddress(label: string): string {
  return `/?label=${encodeURIComponent(label)}`;
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

export function useSearchParams(): URLSearchParams {
  const search = useSyncExternalStore(subscribe, () => location.search);
  return new URLSearchParams(search);
}
