/** The keys of the list and of the tree. */

import { useKeys } from "../base/keys";
import { ask } from "../base/router";
import { undo } from "../decisions/desk";

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

/** `step` goes so many labels on. */
export function useLabelKeys(step: (by: number) => void): void {
  useKeys([
    { keys: ["/"], told: "Filter by words", run: () => focus(".labels-bar .words") },
    { keys: ["j"], told: "Next label", run: () => step(1) },
    { keys: ["k"], told: "Label before", run: () => step(-1) },
    { keys: ["e"], told: "Edit", run: () => focus(".label-edit input") },
    { keys: ["m"], told: "Merge into another", run: () => focus(".label-merge input") },
    { keys: ["Escape"], told: "Back to the list", run: () => ask({ label: null }) },
    { keys: ["z"], told: "Undo", run: undo },
  ]);
}
