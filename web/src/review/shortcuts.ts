/** Shortcuts of the review by label and of the review of one picture. */

import type { DecisionState } from "../api/client";
import { useShortcuts } from "../base/shortcuts";
import { undo } from "../decisions/decision-history";
import type { KeyPress } from "../gallery/grid";

interface GridActions {
  decide: (state: DecisionState) => void; // about the focused picture
  open: () => void; // open the focused picture
  acceptAll: () => void; // accept all open pictures up to the focused one
}

/** Register the shortcuts of the grid; return the handler of keys that only count within it. */
export function useGridShortcuts(actions: GridActions): (event: KeyPress) => void {
  useShortcuts([
    { keys: ["Arrows"], description: "Move", run: () => undefined },
    { keys: ["a"], display: "a Space", description: "Accept, next", run: () => undefined },
    { keys: ["r"], display: "r x", description: "Reject, next", run: () => undefined },
    { keys: ["Enter"], description: "Open", run: () => undefined },
    { keys: ["A"], description: "Accept all open ones up to here", run: actions.acceptAll },
    { keys: ["z"], description: "Undo", run: undo },
  ]);
  return (event) => {
    const state = ({ a: "accepted", " ": "accepted", r: "rejected", x: "rejected" } as const)[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (state) actions.decide(state);
    else if (event.key === "Enter") actions.open();
    else return;
    event.preventDefault();
  };
}

interface PictureActions {
  decideAt: (position: number, state: DecisionState) => void; // about the label at this position
  decide: (state: DecisionState) => void; // about the marked label
  step: (offset: number) => void; // move by a number of labels
  rejectOpen: () => void;
  showNext: () => void;
  showPrevious: () => void;
  addLabel: () => void;
  toggleHeatMap: () => void;
  undo: () => void;
}

/** Register the shortcuts of one picture. */
export function usePictureShortcuts(actions: PictureActions): void {
  const digits = Array.from({ length: 9 }, (_, i) => String(i + 1));
  const decideByDigit = (state: DecisionState) => (event: KeyboardEvent) => {
    actions.decideAt(Number(event.code.slice(-1)) - 1, state);
  };
  useShortcuts([
    { keys: digits, display: "1 … 9", description: "Accept that label", run: decideByDigit("accepted") },
    {
      keys: digits.map((d) => `Shift+${d}`),
      display: "Shift 1 … 9",
      description: "Reject that label",
      run: decideByDigit("rejected"),
    },
    { keys: ["ArrowDown", "j"], display: "↓ j", description: "Next label", run: () => actions.step(1) },
    { keys: ["ArrowUp", "k"], display: "↑ k", description: "Label before", run: () => actions.step(-1) },
    { keys: ["a", "Enter"], description: "Accept the marked label", run: () => actions.decide("accepted") },
    { keys: ["r", "x"], description: "Reject the marked label", run: () => actions.decide("rejected") },
    { keys: ["e"], description: "Reject what is open, next picture", run: actions.rejectOpen },
    { keys: ["ArrowRight", "n", " "], display: "→ n Space", description: "Next picture; what is open stays open", run: actions.showNext },
    { keys: ["ArrowLeft", "p"], display: "← p", description: "Picture before", run: actions.showPrevious },
    { keys: ["t", "+"], description: "Add a label", run: actions.addLabel },
    { keys: ["h"], description: "Show where the marked label is seen", run: actions.toggleHeatMap },
    { keys: ["z"], description: "Undo", run: actions.undo },
  ]);
}
