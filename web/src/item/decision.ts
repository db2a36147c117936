/** Decisions on the labels of an item. */

import type { DecisionState } from "../api/client";
import { decide } from "../decisions/decision-history";

const STATE_WORDS = { accepted: "accepted", rejected: "rejected" } as const;

export function recordDecision(item: number, label: string, state: DecisionState | null): void {
  decide([{ item, label, state }], `“${label}” ${state ? STATE_WORDS[state] : "left open"}`);
}
