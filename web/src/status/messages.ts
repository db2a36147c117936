import type { IndexResult, IndexStatus, Job, ScanResult } from "../api/types";
import { formatCount, formatPercent } from "../base/format";

const SIMILARITIES: Record<string, string> = { dot: "Pictures of a label", cosine: "Similar pictures" };

/** List the notes of a finished job: skipped folders of a scan, quality of an index. */
export function listJobNotes(job: Job): string[] {
  if (!job.result) return [];
  if (job.kind === "index") {
    return Object.entries(job.result as IndexResult).map(
      ([name, result]) => `${SIMILARITIES[name] ?? name}: ${describeRecall(result["recall@10"], result.milliseconds, result.exact_milliseconds)}`,
    );
  }
  if (job.kind !== "scan") return [];
  const { unreachable_roots: skippedFolders, notes, held_tags: heldTags } = job.result as ScanResult;
  const heldNotes = heldTags ? [`${formatCount(heldTags, "tag")} kept that files no longer have; clear those that are wrong`] : [];
  return [...skippedFolders.map((skipped) => `${skipped.folder} is left as it was (${formatCount(skipped.items, "item")}): ${skipped.reason}`), ...notes, ...heldNotes];
}

/** Describe the index of similar pictures, present or possible; null if none helps. */
export function describeIndex(index: IndexStatus): string | null {
  const { state, recall, milliseconds } = index;
  if (state === "none") return "Find similar pictures sooner in a very large collection";
  if (state !== "ready" || recall === null || milliseconds === null) return null;
  return `It finds at least ${formatPercent(recall)} of the ten nearest pictures, in ${formatMilliseconds(milliseconds)} ms or less`;
}

function describeRecall(recall: number, milliseconds: number, exact: number): string {
  return `${formatPercent(recall)} of the ten nearest are found, in ${formatMilliseconds(milliseconds)} ms instead of ${formatMilliseconds(exact)}`;
}

function formatMilliseconds(milliseconds: number): string {
  return milliseconds < 10 ? milliseconds.toFixed(1) : milliseconds.toFixed(0);
}

/** Describe which precision suggestions reach at which probability. */
export function describeThresholds(thresholds: readonly { precision: number; probability: number | null }[]): string {
  const reached = thresholds.filter((t) => t.probability !== null);
  const never = thresholds.filter((t) => t.probability === null).map((t) => formatPercent(t.precision));
  const [lowest, ...higher] = reached.map((t) => ({ right: formatPercent(t.precision), from: formatPercent(t.probability ?? 0) }));
  const higherText = higher.map(({ right, from: limit }) => `; ${right} from ${limit} on`).join("");
  const reachedText = lowest ? `${lowest.right} of the suggestions with a probability of ${lowest.from} or more are right${higherText}.` : "";
  const neverText = never.length ? `More tags are needed before ${never.join(" or ")} of suggestions are right.` : "";
  return [reachedText, neverText].filter(Boolean).join(" ");
}

/** Describe how the model in use came to know its labels. */
export function describeMethod(method: string): string {
  if (method === "zero-shot") return "knows only the names of labels";
  return method === "corrections" ? "learned from corrections" : "learned from everything";
}
