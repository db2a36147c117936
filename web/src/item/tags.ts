/** The labels of an item as the reader sees them: what the service said, and over it what was just decided. */

import type { Annotation, ItemDetails, Suggestion } from "../api/types";
import type { Verdict } from "../api/client";
import { keyOf } from "./key";

export interface TagRow {
  label: string;
  verdict: Verdict | null;
  annotation: Annotation | null;
  suggestion: Suggestion | null;
}

/** Suggestions and annotations of the whole item, in the order in which they were first seen. */
export function tagRows(item: ItemDetails, overlay: ReadonlyMap<string, Verdict | null>): TagRow[] {
  const rows = new Map<string, TagRow>();
  for (const annotation of item.annotations) {
    if (annotation.region) continue;
    rows.set(annotation.label, { label: annotation.label, verdict: annotation.state, annotation, suggestion: null });
  }
  for (const suggestion of item.suggestions) {
    const row = rows.get(suggestion.label);
    if (row) row.suggestion = suggestion;
    else rows.set(suggestion.label, { label: suggestion.label, verdict: null, annotation: null, suggestion });
  }
  const start = keyOf(item.id, "");
  for (const [key, verdict] of overlay) {
    if (!key.startsWith(start)) continue;
    const label = key.slice(start.length);
    const row = rows.get(label);
    if (row) row.verdict = verdict;
    else if (verdict) rows.set(label, { label, verdict, annotation: null, suggestion: null });
  }
  return [...rows.values()];
}

/** Where a label came from, in words. */
export function provenance(row: TagRow): string {
  const told = row.annotation;
  if (!told) {
    if (row.verdict) return "just now, by you";
    return row.suggestion ? "suggested by the model" : "";
  }
  const who = told.origin === "import" ? `imported from ${told.by}` : told.origin === "model" ? `by ${told.by}` : `by ${told.by}`;
  return told.model !== null ? `${who}, suggested by model ${told.model}` : who;
}
