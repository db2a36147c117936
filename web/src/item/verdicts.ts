/** Decisions on the labels of an item. */

import type { Verdict } from "../api/client";
import { decide } from "../decisions/decision-history";

const VERDICT_WORDS = { accepted: "accepted", rejected: "rejected" } as const;

export function recordVerdict(item: number, label: string, verdict: Verdict | null): void {
  decide([{ item, label, state: verdict }], `“${label}” ${verdict ? VERDICT_WORDS[verdict] : "left open"}`);
}
