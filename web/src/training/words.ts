/** What a comparison says, in words; and the marks of an axis. */

import type { Comparison, ComparedModel, JobStatus, ModelList } from "../api/types";
import { count } from "../base/format";

/** A figure with its sign; a real minus, so that it is as wide as the plus. */
export function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

/** What the difference of a model from the first one means. */
export function verdictOf(one: ComparedModel, first: number, items: number): string {
  const gap = one.difference?.["MAP"];
  if (!gap) return "";
  const between = `${signed(gap.low)} to ${signed(gap.high)} with 95 % confidence`;
  const judged = `on ${count(items, "held-out picture")}`;
  if (one.verdict === "alike") {
    return `It cannot be said which is better: the MAP of model ${one.model} differs from that of model ${first} by ${signed(gap.mean)} (${between}) ${judged}, which may be chance.`;
  }
  return `Model ${one.model} does ${one.verdict} than model ${first}: its MAP differs by ${signed(gap.mean)} (${between}) ${judged}.`;
}

/** Numbers of models in an address: `1,2`. */
export function chosenIn(text: string | null): number[] {
  const numbers = (text ?? "").split(",").map(Number);
  return [...new Set(numbers)].filter((n) => Number.isInteger(n) && n > 0).slice(0, 2);
}

/** Why two models cannot be compared, or one cannot be shown; null where all are there. */
export function missingOf(numbers: readonly number[], found: ModelList): string | null {
  const gone = numbers.filter((n) => found.removed.includes(n));
  const away = numbers.filter((n) => found.models.some((model) => model.id === n && !model.is_available));
  const unknown = numbers.filter((n) => !gone.includes(n) && !found.models.some((model) => model.id === n));
  const said = [
    unknown.length && `There is no model ${unknown.join(" and no model ")} here.`,
    gone.length && `Model ${gone.join(" and model ")} ${gone.length > 1 ? "were" : "was"} removed.`,
    away.length && `The files of model ${away.join(" and model ")} are gone.`,
  ].filter(Boolean);
  return said.length ? said.join(" ") : null;
}

/** The latest job that compares these models, in this order. */
export function comparisonJob(jobs: readonly JobStatus[], models: readonly number[]): JobStatus | null {
  const wanted = models.join();
  const asked = (job: JobStatus): string => (Array.isArray(job.options["models"]) ? job.options["models"].join() : "");
  return jobs.find((job) => job.kind === "compare" && asked(job) === wanted) ?? null;
}

export function comparisonOf(job: JobStatus | null): Comparison | null {
  return job?.state === "done" ? (job.result as unknown as Comparison) : null;
}

/** Round numbers from at most `low` to at least `high`, about `n` of them. */
export function marks(low: number, high: number, n = 3): number[] {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const rough = span / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 10 * power;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** A mark with as many decimals as the others of its axis. */
export function axis(mark: number, all: readonly number[]): string {
  if (all.some((one) => one !== 0 && (Math.abs(one) >= 10_000 || Math.abs(one) < 1e-6))) return mark.toExponential(0);
  const decimals = Math.max(...all.map((one) => String(one).split(".")[1]?.length ?? 0));
  return mark.toFixed(Math.min(decimals, 6));
}
