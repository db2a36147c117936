/** Keys of a page: what they do, and the list that ? shows. */

import { useEffect, useRef } from "react";
import { store } from "./store";

export interface Shortcut {
  keys: string[]; // as KeyboardEvent.key has them, with "Shift+" before a digit or an arrow
  told: string;
  shown?: string; // how it is written in the list
  run: (event: KeyboardEvent) => void;
}

export const shortcutsOfPage = store<readonly Shortcut[]>([]);

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

/** The name of a key press; digits by their place, so that Shift+1 is the same on every keyboard. */
export function pressed(event: KeyboardEvent): string {
  const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
  const key = digit ? digit[1]! : event.key;
  return event.shiftKey && (digit || key.length > 1) ? `Shift+${key}` : key;
}

/** Whether the browser would do something of its own with it. */
function activates(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" && event.key !== " ") return false;
  return event.target instanceof HTMLElement && event.target.closest("button, a, summary") !== null;
}

/** Listen to keys while the component is shown; not while somebody types, nor below an open dialog. */
export function useKeys(shortcuts: Shortcut[], within: "page" | "dialog" = "page"): void {
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
    if (within === "page") shortcutsOfPage.set(shortcuts);
  });
  useEffect(() => {
    const heard = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing(event.target) || activates(event)) return;
      const open = document.querySelectorAll("dialog[open]");
      if (within === "page" ? open.length > 0 : open.length > 1) return;
      const name = pressed(event);
      const found = latest.current.find((s) => s.keys.includes(name));
      if (!found) return;
      event.preventDefault();
      found.run(event);
    };
    window.addEventListener("keydown", heard);
    return () => {
      window.removeEventListener("keydown", heard);
      if (within === "page") shortcutsOfPage.set([]);
    };
  }, [within]);
}
