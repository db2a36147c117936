import { formatCount } from "../base/format";
import type { Step } from "./decision-queue";

/** Describe a pending step. */
export function describeStep(step: Step): string {
  if (step.kind === "undo") return `Taking back: ${step.description}`;
  if (step.kind === "above") return `Accepting ${step.label ?? "everything"} from ${Math.round(step.probability * 100)} %`;
  const firstDecision = step.decisions[0]!;
  const moreCount = step.decisions.length - 1;
  return `${firstDecision.label} ${firstDecision.state ?? "left open"}${moreCount ? ` and ${formatCount(moreCount, "more", "more")}` : ""}`;
}
