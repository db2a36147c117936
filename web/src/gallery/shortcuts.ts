/** Shortcuts of the gallery. */

import { useShortcuts } from "../base/shortcuts";
import { undo } from "../decisions/decision-history";
import type { KeyPress } from "./grid";

interface GalleryActions {
  focusFilter: () => void;
  toggleFilters: () => void;
  toggle: () => void; // select the focused picture or not
  open: () => void; // open the focused picture
  selectAll: () => void;
  selectNothing: () => void;
}

/** Register the shortcuts; return the handler of keys that only count within the grid. */
export function useGalleryShortcuts(actions: GalleryActions): (event: KeyPress) => void {
  useShortcuts([
    { keys: ["/"], description: "Filter by words", run: actions.focusFilter },
    { keys: ["f"], description: "All filters", run: actions.toggleFilters },
    { keys: ["Arrows"], description: "Move; with Shift select", run: () => undefined },
    { keys: ["x", "Space"], description: "Select or not", run: () => undefined },
    { keys: ["Enter"], description: "Open", run: () => undefined },
    { keys: ["Ctrl+A"], description: "Select all that are loaded", run: () => undefined },
    {
      keys: ["t"],
      description: "Tag what is selected",
      run: () => document.querySelector<HTMLInputElement>(".tag-bar input")?.focus(),
    },
    { keys: ["Escape"], description: "Select nothing", run: actions.selectNothing },
    { keys: ["z"], description: "Undo", run: undo },
  ]);
  return (event) => {
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) actions.selectAll();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === " " || event.key === "x") actions.toggle();
    else if (event.key === "Enter") actions.open();
    else return;
    event.preventDefault();
  };
}
