/** Lowest probability at which suggestions reach a precision. */

import { api } from "../api/client";
import { labelApi } from "../api/labels";

export interface Threshold {
  precision: number;
  probability: number;
}

/** Fetch the thresholds of a label; its own if enough of its suggestions were evaluated, null if unknown. */
export async function fetchThresholds(label: string, signal?: AbortSignal): Promise<Threshold[] | null> {
  const { labels } = await api.completeLabels(label, 20, signal);
  const id = labels.find((hit) => hit.name === label)?.id;
  const evaluation = id === undefined ? null : (await labelApi.get(id, signal)).evaluation;
  return evaluation && selectReachable(evaluation.thresholds);
}

/** Select the thresholds that some probability reaches. */
export function selectReachable(thresholds: { precision: number; probability: number | null }[]): Threshold[] {
  return thresholds.filter((threshold): threshold is Threshold => threshold.probability !== null);
}
