/** From which probability on suggestions are right so often. */

import { api } from "../api/client";
import { labelApi } from "../api/labels";

export interface Limit {
  precision: number;
  probability: number;
}

/** Those of one label, which are its own where the model was judged by enough of its suggestions; null: not known. */
export async function limitsOf(label: string, signal?: AbortSignal): Promise<Limit[] | null> {
  const { labels } = await api.labels(label, 20, signal);
  const id = labels.find((hit) => hit.name === label)?.id;
  const held = id === undefined ? null : (await labelApi.whole(id, signal)).evaluation;
  return held && usable(held.thresholds);
}

/** Those that some probability reaches. */
export function usable(limits: { precision: number; probability: number | null }[]): Limit[] {
  return limits.filter((limit): limit is Limit => limit.probability !== null);
}
