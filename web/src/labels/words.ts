/** Labels as people read of them. */

import { number, percent } from "../base/format";

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
