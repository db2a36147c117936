/** Sentences about a comparison, and the ticks of an axis. */

import type { Comparison, ComparedModel, Job, ModelList } from "../api/types";
import { formatCount } from "../base/format";

/** Format a figure with its sign; a true minus is as wide as the plus. */
export function formatSigned(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
}

/** Describe the difference between a model and the reference model. */
export function describeVerdict(model: ComparedModel, referenceModel: number, items: number): string {
  const difference = model.difference?.["MAP"];
  if (!difference) return "";
  const interval = `${formatSigned(difference.low)} to ${formatSigned(difference.high)} with 95 % confidence`;
  const basis = `on ${formatCount(items, "held-out picture")}`;
  if (model.verdict === "alike") {
    return `It cannot be said which is better: the MAP of model ${model.model} differs from that of model ${referenceModel} by ${formatSigned(difference.mean)} (${interval}) ${basis}, which may be chance.`;
  }
  return `Model ${model.model} does ${model.verdict} than model ${referenceModel}: its MAP differs by ${formatSigned(difference.mean)} (${interval}) ${basis}.`;
}

/** Parse the model ids of an address: `1,2`. */
export function parseModelIds(text: string | null): number[] {
  const numbers = (text ?? "").split(",").map(Number);
  return [...new Set(numbers)].filter((n) => Number.isInteger(n) && n > 0).slice(0, 2);
}

/** Describe why models cannot be compared or shown; null if all are available. */
export function describeMissing(numbers: readonly number[], models: ModelList): string | null {
  const removed = numbers.filter((n) => models.removed.includes(n));
  const unavailable = numbers.filter((n) => models.models.some((model) => model.id === n && !model.is_available));
  const unknown = numbers.filter((n) => !removed.includes(n) && !models.models.some((model) => model.id === n));
  const sentences = [
    unknown.length && `There is no model ${unknown.join(" and no model ")} here.`,
    removed.length && `Model ${removed.join(" and model ")} ${removed.length > 1 ? "were" : "was"} removed.`,
    unavailable.length && `The files of model ${unavailable.join(" and model ")} are gone.`,
  ].filter(Boolean);
  return sentences.length ? sentences.join(" ") : null;
}

/** Return the latest job that compares these models, in this order. */
export function findComparisonJob(jobs: readonly Job[], models: readonly number[]): Job | null {
  const modelKey = models.join();
  const buildJobKey = (job: Job): string => (Array.isArray(job.options["models"]) ? job.options["models"].join() : "");
  return jobs.find((job) => job.kind === "compare" && buildJobKey(job) === modelKey) ?? null;
}

export function getComparison(job: Job | null): Comparison | null {
  return job?.state === "done" ? (job.result as Comparison) : null;
}

/** Compute about `count` round ticks from at most `low` to at least `high`. */
export function computeTicks(low: number, high: number, count = 3): number[] {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  const firstStep = Math.floor(low / step + 1e-9);
  const lastStep = Math.max(firstStep + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: lastStep - firstStep + 1 }, (_, i) => Number(((firstStep + i) * step).toPrecision(12)));
}

/** Format a tick with as many decimals as the others of its axis. */
export function formatTick(tick: number, ticks: readonly number[]): string {
  if (ticks.some((value) => value !== 0 && (Math.abs(value) >= 10_000 || Math.abs(value) < 1e-6))) return tick.toExponential(0);
  const decimals = Math.max(...ticks.map((value) => String(value).split(".")[1]?.length ?? 0));
  return tick.toFixed(Math.min(decimals, 6));
}
