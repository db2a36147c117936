/** Syntax of a search: words, "labels of several words", and -excluded. */

import type { SearchTerm } from "../base/label-input";

/** Parse the last term of a text; `complete` puts a label in its place. */
export function parseLastTerm(text: string): SearchTerm {
  const match = /(?:^|\s)(-?)(?:"([^"]*)|([^\s"]*))$/.exec(text);
  if (!match) return { text: "", complete: (label) => `${text.trimEnd()} ${quoteLabel(label)}`.trim() };
  const [matchText, minus = "", quoted, word] = match;
  const space = /^\s/.test(matchText) ? " " : "";
  const leadingText = text.slice(0, text.length - matchText.length);
  return { text: (quoted ?? word ?? "").trim(), complete: (label) => `${leadingText}${space}${minus}${quoteLabel(label)} ` };
}

/** Quote a label for a search if it needs quotes. */
export function quoteLabel(label: string): string {
  return /[\s"-]/.test(label) ? `"${label.replaceAll('"', "")}"` : label;
}
