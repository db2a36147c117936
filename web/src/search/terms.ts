/** The text of a search: words, "labels of several words", and -not. */

import type { Part } from "../base/label-input";

/** The term at the end of a text, which is being typed, and the text with a label in its place. */
export function lastTerm(text: string): Part {
  const found = /(?:^|\s)(-?)(?:"([^"]*)|([^\s"]*))$/.exec(text);
  if (!found) return { sought: "", put: (label) => `${text.trimEnd()} ${written(label)}`.trim() };
  const [whole, not = "", quoted, plain] = found;
  const space = /^\s/.test(whole) ? " " : "";
  const before = text.slice(0, text.length - whole.length);
  return { sought: (quoted ?? plain ?? "").trim(), put: (label) => `${before}${space}${not}${written(label)} ` };
}

/** A label as it is written in a search. */
export function written(label: string): string {
  return /[\s"-]/.test(label) ? `"${label.replaceAll('"', "")}"` : label;
}
