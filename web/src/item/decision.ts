/** Decisions on a label of items. */

import type { DecisionState } from "../api/client";
import type { ReviewDecision } from "../api/types";
import { formatCount } from "../base/format";
import { decide } from "../decisions/decision-history";

const STATE_WORDS = { accepted: "accepted", rejected: "rejected" } as const;

/** Build the decisions on a card: on its first item, and on the others where their state is the same. */
export function buildDecisions(items: readonly number[], label: string, state: DecisionState | null, previous: DecisionState | null): ReviewDecision[] {
  return items.map((item, at) => ({ item, label, state, ...(at > 0 && { expected: previous ?? "open" }) }));
}

export function recordDecision(items: readonly number[], label: string, state: DecisionState | null, previous: DecisionState | null = null): void {
  const description = `“${label}” ${state ? STATE_WORDS[state] : "left open"}`;
  decide(
    buildDecisions(items, label, state, previous),
    items.length > 1 ? `${description} for ${formatCount(items.length, "picture")}` : description,
  );
}
