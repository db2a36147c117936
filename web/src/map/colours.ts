/** Colours of points, as the sheet of the page has them. */

export type Colour = readonly [number, number, number]; // red, green, blue: 0 to 255

export interface Look {
  plain: Colour;
  faint: Colour; // plain ones while a label is looked at
  accepted: Colour;
  rejected: Colour;
  low: Colour; // suggested with a probability of 0
  high: Colour; // and of 1
  chosen: Colour;
}

const NAMES = {
  plain: "--map-plain",
  faint: "--map-faint",
  accepted: "--map-accepted",
  rejected: "--map-rejected",
  low: "--map-low",
  high: "--map-high",
  chosen: "--map-chosen",
} as const;

/** The colours that hold for an element. */
export function lookOf(element: Element): Look {
  const style = getComputedStyle(element);
  const found = Object.entries(NAMES).map(([name, variable]) => [name, parsed(style.getPropertyValue(variable))]);
  return Object.fromEntries(found) as Look;
}

/** A colour such as #12693f, or #fff, to which builds shorten some. */
export function parsed(text: string): Colour {
  const digits = text.trim().replace("#", "");
  const whole = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const number = parseInt(whole, 16) || 0;
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

/** A colour on the way from one to the other. */
export function between(low: Colour, high: Colour, share: number): Colour {
  const mixed = (i: 0 | 1 | 2): number => Math.round(low[i] + (high[i] - low[i]) * share);
  return [mixed(0), mixed(1), mixed(2)];
}
