/** Shortcuts of the list, of the tree and of the merge proposals. */

import { useShortcuts } from "../base/shortcuts";
import { updateSearchParams } from "../base/router";
import { undo } from "../decisions/decision-history";

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

/** Register the shortcuts; `step` moves by a number of labels. */
export function useLabelShortcuts(step: (offset: number) => void): void {
  useShortcuts([
    { keys: ["/"], description: "Filter by words", run: () => focus(".labels-bar .words") },
    { keys: ["j"], description: "Next label", run: () => step(1) },
    { keys: ["k"], description: "Label before", run: () => step(-1) },
    { keys: ["e"], description: "Edit", run: () => focus(".label-edit input") },
    { keys: ["m"], description: "Merge into another", run: () => focus(".label-merge input") },
    { keys: ["Escape"], description: "Back to the list", run: () => updateSearchParams({ label: null }) },
    { keys: ["z"], description: "Undo", run: undo },
  ]);
}

export type ProposalAction = "merge" | "apart";

/** Register the shortcuts of merge proposals; `step` moves by a number of proposals. */
export function useProposalShortcuts(step: (offset: number) => void, decide: (action: ProposalAction) => void): void {
  useShortcuts([
    { keys: ["j", "ArrowDown"], description: "Next proposal", run: () => step(1) },
    { keys: ["k", "ArrowUp"], description: "Proposal before", run: () => step(-1) },
    { keys: ["a"], description: "Merge", run: () => decide("merge") },
    { keys: ["x"], description: "Keep apart", run: () => decide("apart") },
    { keys: ["z"], description: "Undo", run: undo },
  ]);
}
