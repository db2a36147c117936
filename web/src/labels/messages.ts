/** Texts about labels. */

import type { LabelDetails } from "../api/types";
import { formatCount, formatNumber, formatPercent } from "../base/format";

const languageNames = new Intl.DisplayNames("en", { type: "language" });

/** Return the English name of a language tag. */
export function formatLanguage(tag: string): string {
  if (!tag) return "";
  try {
    return languageNames.of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** Format the share of correct suggestions. */
export function formatAccuracy(correct: number, total: number): string {
  return total ? `${formatPercent(correct / total)} of ${formatNumber(total)}` : "";
}

/** Return the address of the review of a label. */
export function buildReviewAddress(label: string): string {
  return `/review?view=grid&label=${encodeURIComponent(label)}`;
}

/** Describe what is deleted with a label. */
export function describeDeletion(label: Pick<LabelDetails, "items" | "rejected" | "names">): string {
  const tags = [
    label.items && `${formatCount(label.items, "picture")} ${label.items === 1 ? "has" : "have"} this tag`,
    label.rejected && `${formatCount(label.rejected, "picture")} ${label.rejected === 1 ? "rejects" : "reject"} it`,
  ].filter(Boolean);
  const names = label.names.length ? ` and its ${formatCount(label.names.length, "other name")}` : "";
  if (!tags.length) return `No picture has this tag: only the label goes${names && `,${names}`}.`;
  return `${tags.join(", ")}. That goes with the label${names}; the pictures stay.`;
}
