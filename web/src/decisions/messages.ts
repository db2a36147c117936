import { formatCount } from "../base/format";
import type { PendingChange } from "./decision-queue";

/** Describe a pending change. */
export function describeChange(change: PendingChange): string {
  if (change.kind === "undo") return `Taking back: ${change.description}`;
  if (change.kind === "above") return `Accepting ${change.label ?? "everything"} from ${Math.round(change.probability * 100)} %`;
  const firstDecision = change.decisions[0]!;
  const moreCount = change.decisions.length - 1;
  return `${firstDecision.label} ${firstDecision.state ?? "left open"}${moreCount ? ` and ${formatCount(moreCount, "more", "more")}` : ""}`;
}
