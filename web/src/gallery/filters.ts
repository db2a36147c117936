/** Filters and order of the gallery, as parameters of its address. */

import type { ItemConditions, ItemQuery, Sort } from "../api/client";

export const SORTS: { value: Sort; name: string; descending: boolean }[] = [
  { value: "path", name: "Name", descending: false },
  { value: "taken_at", name: "Date taken", descending: true },
  { value: "added_at", name: "Date added", descending: true },
  { value: "best_probability", name: "Most probable", descending: true },
  { value: "uncertainty", name: "Most doubtful", descending: true },
  { value: "probability", name: "Probability of the label", descending: true },
];

const FILTER_NAMES = ["label", "state", "min", "max", "untagged", "unfit", "folder", "from", "to", "words", "presence", "selection"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

/** Count the filters that are set. */
export function countFilters(params: URLSearchParams): number {
  return FILTER_NAMES.filter((name) => params.get(name)).length;
}

export const NO_FILTERS: Record<FilterName, null> = Object.fromEntries(FILTER_NAMES.map((name) => [name, null])) as Record<
  FilterName,
  null
>;

/** True for suggestions of one label; only these have a probability. */
export function isSuggestionList(params: URLSearchParams): boolean {
  return Boolean(params.get("label")) && params.get("state") === "suggested";
}

/** Build the query for the service. */
export function buildItemQuery(params: URLSearchParams): ItemQuery {
  const sort = SORTS.find((s) => s.value === params.get("sort")) ?? SORTS[0]!;
  const query: ItemQuery = { sort: sort.value === "probability" && !isSuggestionList(params) ? "best_probability" : sort.value };
  const descending = params.get("order") === "other" ? !sort.descending : sort.descending;
  if (descending) query.descending = true;
  if (params.get("selection")) query.selection = params.get("selection")!;
  const presence = params.get("presence");
  query.state = presence === "missing" || presence === "unreadable" ? presence : "present";
  return { ...query, ...buildConditions(params) };
}

/** Build the filter for the service; a search takes it too. */
export function buildConditions(params: URLSearchParams): ItemConditions {
  const label = params.get("label") ?? "";
  const isSuggested = isSuggestionList(params);
  const query: ItemConditions = {};
  if (label) query.label = label;
  const state = params.get("state");
  if (label && (state === "accepted" || state === "rejected" || state === "suggested")) query.label_state = state;
  for (const [name, key] of [
    ["min", "min_probability"],
    ["max", "max_probability"],
  ] as const) {
    const value = Number(params.get(name));
    if (isSuggested && params.get(name) && value >= 0 && value <= 100) query[key] = value / 100;
  }
  if (params.get("untagged")) query.unlabelled = true;
  const unfitPercent = Number(params.get("unfit"));
  if (unfitPercent > 0 && unfitPercent <= 100) query.no_tag_fits = unfitPercent / 100;
  for (const [name, key] of [
    ["folder", "folder"],
    ["from", "taken_from"],
    ["to", "taken_to"],
    ["words", "words"],
  ] as const) {
    const value = params.get(name);
    if (value) query[key] = value;
  }
  return query;
}
