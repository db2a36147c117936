/** Decisions on a label of items. */

import type { DecisionState } from "../api/client";
import { formatCount } from "../base/format";
import { decide } from "../decisions/decision-history";

const STATE_WORDS = { accepted: "accepted", rejected: "rejected" } as const;

export function recordDecision(items: readonly number[], label: string, state: DecisionState | null): void {
  const description = `“${label}” ${state ? STATE_WORDS[state] : "left open"}`;
  decide(
    items.map((item) => ({ item, label, state })),
    items.length > 1 ? `${description} for ${formatCount(items.length, "picture")}` : description,
  );
}
