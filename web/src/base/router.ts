/** Where the reader is: the path and the query of the address, so that going back works. */

import { useSyncExternalStore } from "react";

export type Changes = Record<string, string | number | boolean | null | undefined>;

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

/** Go to an address; `replace` where going back should not return here (a slider that moves). */
export function go(address: string, options: { replace?: boolean; state?: unknown } = {}): void {
  if (address === location.pathname + location.search) return;
  const state = options.replace ? history.state : (options.state ?? null);
  history[options.replace ? "replaceState" : "pushState"](state, "", address);
  listeners.forEach((listener) => listener());
}

/** A query with some of its values changed; what is empty or false is left out. */
export function changed(search: string, changes: Changes): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) params.delete(name);
    else params.set(name, value === true ? "1" : String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** Change the query of the page that is open. */
export function ask(changes: Changes, options: { replace?: boolean } = {}): void {
  go(location.pathname + changed(location.search, changes), options);
}

const OVER = "over";

/** Open something over the page, so that going back closes it. */
export function openOver(name: string, value: string | number): void {
  const replace = new URLSearchParams(location.search).has(name);
  go(location.pathname + changed(location.search, { [name]: value }), { replace, state: OVER });
}

/** Close it: go back to where it was opened, or stay where the address was typed. */
export function closeOver(name: string): void {
  if (history.state === OVER) history.back();
  else ask({ [name]: null }, { replace: true });
}

/** Where the pictures of a label are. */
export function galleryOf(label: string): string {
  return `/?label=${encodeURIComponent(label)}`;
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

export function useAsked(): URLSearchParams {
  const search = useSyncExternalStore(subscribe, () => location.search);
  return new URLSearchParams(search);
}
