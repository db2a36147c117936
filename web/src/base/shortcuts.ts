/** Keyboard shortcuts of a page, and the list that ? shows. */

import { useEffect, useLayoutEffect, useRef } from "react";
import { createStore } from "./store";

export interface Shortcut {
  keys: string[]; // values of KeyboardEvent.key, with "Shift+" before a digit or an arrow
  description: string;
  display?: string; // its text in the list
  run: (event: KeyboardEvent) => void;
}

export const pageShortcuts = createStore<readonly Shortcut[]>([]);

function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

/** Name a key press; digits by their position, so that Shift+1 is the same on every keyboard. */
export function nameKey(event: KeyboardEvent): string {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  const key = digit ? digit[1]! : event.key;
  return event.shiftKey && (digit || key.length > 1) ? `Shift+${key}` : key;
}

/** True if the browser handles the key itself. */
function isActivation(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" && event.key !== " ") return false;
  return event.target instanceof HTMLElement && event.target.closest("button, a, summary") !== null;
}

/** Listen to keys while the component is mounted, except during typing and below an open dialog. */
export function useShortcuts(shortcuts: Shortcut[], scope: "page" | "dialog" = "page"): void {
  const latest = useRef(shortcuts);
  useLayoutEffect(() => {
    latest.current = shortcuts; // with what is on the screen, so that no key meets an earlier state
  });
  useEffect(() => {
    if (scope === "page") pageShortcuts.set(shortcuts);
  });
  useLayoutEffect(() => {
    const handleKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTextField(event.target) || isActivation(event)) return;
      const dialogs = document.querySelectorAll("dialog[open]");
      if (scope === "page" ? dialogs.length > 0 : dialogs.length > 1) return;
      const name = nameKey(event);
      const shortcut = latest.current.find((s) => s.keys.includes(name));
      if (!shortcut) return;
      event.preventDefault();
      shortcut.run(event);
    };
    window.addEventListener("keydown", handleKey);
    return () => {
      window.removeEventListener("keydown", handleKey);
      if (scope === "page") pageShortcuts.set([]);
    };
  }, [scope]);
}
