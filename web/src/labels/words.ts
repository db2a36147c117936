/** Labels as people read of them. */

import type { LabelDetails } from "../api/types";
import { count, number, percent } from "../base/format";

const languages = new Intl.DisplayNames("en", { type: "language" });

/** The name of a language. */
export function spoken(tag: string): string {
  if (!tag) return "";
  try {
    return languages.of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** How often suggestions were right. */
export function accuracy(right: number, of: number): string {
  return of ? `${percent(right / of)} of ${number(of)}` : "";
}

/** Where its suggestions are gone through. */
export function reviewOf(label: string): string {
  return `/review?view=grid&label=${encodeURIComponent(label)}`;
}

/** What goes when a label is deleted. */
export function goesWith(label: Pick<LabelDetails, "items" | "rejected" | "names">): string {
  const tags = [
    label.items && `${count(label.items, "picture")} ${label.items === 1 ? "is" : "are"} tagged so`,
    label.rejected && `${count(label.rejected, "picture")} ${label.rejected === 1 ? "is" : "are"} marked as not being so`,
  ].filter(Boolean);
  const names = label.names.length ? ` and its ${count(label.names.length, "other name")}` : "";
  if (!tags.length) return `No picture is tagged so: only the label goes${names && `,${names}`}.`;
  return `${tags.join(", ")}. That goes with the label${names}; the pictures stay.`;
}
