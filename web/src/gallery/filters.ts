/** What the gallery shows, as its address says it. */

import type { ItemQuery } from "../api/client";
import type { Sort } from "../api/client";

export const SORTS: { value: Sort; name: string; descending: boolean }[] = [
  { value: "path", name: "Name", descending: false },
  { value: "taken_at", name: "Date taken", descending: true },
  { value: "added_at", name: "Date added", descending: true },
  { value: "best_probability", name: "Surest", descending: true },
  { value: "uncertainty", name: "Most doubtful", descending: true },
  { value: "probability", name: "Probability of the label", descending: true },
];

const NAMES = ["label", "state", "min", "max", "untagged", "unfit", "folder", "from", "to", "words", "presence", "picked"] as const;
export type FilterName = (typeof NAMES)[number];

/** How many filters are set. */
export function filtersSet(asked: URLSearchParams): number {
  return NAMES.filter((name) => asked.get(name)).length;
}

export const NO_FILTERS: Record<FilterName, null> = Object.fromEntries(NAMES.map((name) => [name, null])) as Record<
  FilterName,
  null
>;

/** Whether suggestions of one label are asked for: only these have a probability. */
export function suggestedOnly(asked: URLSearchParams): boolean {
  return Boolean(asked.get("label")) && asked.get("state") === "suggested";
}

/** What the service is asked for. */
export function itemQuery(asked: URLSearchParams): ItemQuery {
  const label = asked.get("label") ?? "";
  const suggested = suggestedOnly(asked);
  const sort = SORTS.find((s) => s.value === asked.get("sort")) ?? SORTS[0]!;
  const found: ItemQuery = { sort: sort.value === "probability" && !suggested ? "best_probability" : sort.value };
  const descending = asked.get("order") === "other" ? !sort.descending : sort.descending;
  if (descending) found.descending = true;
  if (label) found.label = label;
  const state = asked.get("state");
  if (label && (state === "accepted" || state === "rejected" || state === "suggested")) found.label_state = state;
  for (const [name, key] of [
    ["min", "min_probability"],
    ["max", "max_probability"],
  ] as const) {
    const value = Number(asked.get(name));
    if (suggested && asked.get(name) && value >= 0 && value <= 100) found[key] = value / 100;
  }
  if (asked.get("untagged")) found.unlabelled = true;
  const unfit = Number(asked.get("unfit"));
  if (unfit > 0 && unfit <= 100) found.no_tag_fits = unfit / 100;
  if (asked.get("picked")) found.picked = asked.get("picked")!;
  const presence = asked.get("presence");
  found.state = presence === "missing" || presence === "unreadable" ? presence : "present";
  for (const [name, key] of [
    ["folder", "folder"],
    ["from", "taken_from"],
    ["to", "taken_to"],
    ["words", "words"],
  ] as const) {
    const value = asked.get(name);
    if (value) found[key] = value;
  }
  return found;
}
