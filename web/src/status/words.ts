import type { IndexStatus, JobStatus } from "../api/types";
import { count, percent } from "../base/format";

interface ScanResult {
  away: { folder: string; reason: string; items: number }[];
  notes: string[];
  held?: number; // tags; scans of older versions did not say
}

interface IndexResult {
  "recall@10": number;
  milliseconds: number;
  exact_milliseconds: number;
}

const SIMILARITIES: Record<string, string> = { dot: "Pictures of a label", cosine: "Similar pictures" };

/** What a job has to say when it is done: a scan which folders it left alone, an index how well it finds. */
export function notesOf(job: JobStatus): string[] {
  if (!job.result) return [];
  if (job.kind === "index") {
    return Object.entries(job.result as unknown as Record<string, IndexResult>).map(
      ([name, made]) => `${SIMILARITIES[name] ?? name}: ${foundTold(made["recall@10"], made.milliseconds, made.exact_milliseconds)}`,
    );
  }
  if (job.kind !== "scan") return [];
  const { away, notes, held } = job.result as unknown as ScanResult;
  const kept = held ? [`${count(held, "tag")} kept that a file no longer says; clear those that are wrong`] : [];
  return [...away.map((one) => `${one.folder} is left as it was (${count(one.items, "item")}): ${one.reason}`), ...notes, ...kept];
}

/** What the index of similar pictures is or would be; null where none would help. */
export function indexTold(index: IndexStatus): string | null {
  const { state, recall, milliseconds } = index;
  if (state === "none") return "Find similar pictures sooner in a very large collection";
  if (state !== "ready" || recall === null || milliseconds === null) return null;
  return `It finds at least ${percent(recall)} of the ten nearest pictures, in ${short(milliseconds)} ms or less`;
}

function foundTold(recall: number, milliseconds: number, exact: number): string {
  return `${percent(recall)} of the ten nearest are found, in ${short(milliseconds)} ms instead of ${short(exact)}`;
}

function short(milliseconds: number): string {
  return milliseconds < 10 ? milliseconds.toFixed(1) : milliseconds.toFixed(0);
}

/** From which probability on suggestions are right how often. */
export function thresholdsTold(thresholds: readonly { precision: number; probability: number | null }[]): string {
  const reached = thresholds.filter((t) => t.probability !== null);
  const never = thresholds.filter((t) => t.probability === null).map((t) => percent(t.precision));
  const [first, ...others] = reached.map((t) => ({ right: percent(t.precision), from: percent(t.probability ?? 0) }));
  const more = others.map(({ right, from }) => `; ${right} from ${from} on`).join("");
  const said = first ? `${first.right} of the suggestions with a probability of ${first.from} or more are right${more}.` : "";
  const rest = never.length ? `No probability makes ${never.join(" or ")} of them right yet; more tags help.` : "";
  return [said, rest].filter(Boolean).join(" ");
}
