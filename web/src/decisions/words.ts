import { count } from "../base/format";
import type { Step } from "./queue";

/** A step on its way, for people. */
export function toldOf(step: Step): string {
  if (step.kind === "undo") return `Taking back: ${step.told}`;
  if (step.kind === "above") return `Accepting ${step.label ?? "everything"} from ${Math.round(step.probability * 100)} %`;
  const first = step.decisions[0]!;
  const more = step.decisions.length - 1;
  return `${first.label} ${first.state ?? "left open"}${more ? ` and ${count(more, "more", "more")}` : ""}`;
}
