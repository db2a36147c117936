/** Labels of an item: the state of the service, overlaid with decisions of this page. */

import type { Annotation, ItemDetails, Suggestion } from "../api/types";
import type { DecisionState } from "../api/client";
import { buildDecisionKey } from "./decision-key";
import { GUESS } from "./guesses";

export interface TagRow {
  label: string;
  state: DecisionState | null;
  annotation: Annotation | null;
  suggestion: Suggestion | null;
}

/** Build the rows of suggestions and annotations of the whole item, in order of first appearance. */
export function buildTagRows(item: ItemDetails, overlay: ReadonlyMap<string, DecisionState | null>): TagRow[] {
  const rows = new Map<string, TagRow>();
  for (const annotation of item.annotations) {
    if (annotation.region) continue;
    rows.set(annotation.label, { label: annotation.label, state: annotation.state, annotation, suggestion: null });
  }
  for (const suggestion of item.suggestions) {
    const row = rows.get(suggestion.label);
    if (row) row.suggestion = suggestion;
    else rows.set(suggestion.label, { label: suggestion.label, state: null, annotation: null, suggestion });
  }
  const prefix = buildDecisionKey(item.id, "");
  for (const [key, state] of overlay) {
    if (!key.startsWith(prefix)) continue;
    const label = key.slice(prefix.length);
    const row = rows.get(label);
    if (row) row.state = state;
    else if (state) rows.set(label, { label, state, annotation: null, suggestion: null });
  }
  return [...rows.values()];
}

/** True for a suggestion that nobody has decided. */
export function isOpen(row: TagRow): boolean {
  return !row.state && !row.annotation && row.suggestion !== null;
}

/** Describe the origin of a label. */
export function describeProvenance(row: TagRow, isGuess: boolean): string {
  const annotation = row.annotation;
  if (!annotation) {
    if (row.state) return "just now, by you";
    if (!row.suggestion) return "";
    return isGuess ? GUESS : "suggested by the model";
  }
  const source = annotation.origin === "import" ? `imported from ${annotation.by}` : annotation.origin === "model" ? `by ${annotation.by}` : `by ${annotation.by}`;
  return annotation.model !== null ? `${source}, suggested by model ${annotation.model}` : source;
}
