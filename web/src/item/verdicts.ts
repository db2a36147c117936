/** Deciding on the rows of an item. */

import type { Verdict } from "../api/client";
import { decide } from "../decisions/desk";

const DONE = { accepted: "accepted", rejected: "rejected" } as const;

export function giveVerdict(item: number, label: string, verdict: Verdict | null): void {
  decide([{ item, label, state: verdict }], `“${label}” ${verdict ? DONE[verdict] : "left open"}`);
}
