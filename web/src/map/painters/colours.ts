/** Colours of points, from the style sheet. */

export type Colour = readonly [number, number, number]; // red, green, blue: 0 to 255

export interface PointColours {
  plain: Colour;
  faint: Colour; // plain points while a label is shown
  accepted: Colour;
  rejected: Colour;
  low: Colour; // suggested with a probability of 0
  high: Colour; // and of 1
  selected: Colour;
}

const VARIABLES = {
  plain: "--map-plain",
  faint: "--map-faint",
  accepted: "--map-accepted",
  rejected: "--map-rejected",
  low: "--map-low",
  high: "--map-high",
  selected: "--map-selected",
} as const satisfies Record<keyof PointColours, string>;

/** Read the colours that apply to an element. */
export function readPointColours(element: Element): PointColours {
  const style = getComputedStyle(element);
  const colours = Object.entries(VARIABLES).map(([name, variable]) => [name, parseColour(style.getPropertyValue(variable))]);
  return Object.fromEntries(colours) as PointColours;
}

/** Parse a colour such as #12693f, or #fff as the build shortens some. */
export function parseColour(text: string): Colour {
  const digits = text.trim().replace("#", "");
  const sixDigits = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const number = parseInt(sixDigits, 16) || 0;
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

/** Mix two colours. */
export function mixColours(low: Colour, high: Colour, share: number): Colour {
  const mixChannel = (i: 0 | 1 | 2): number => Math.round(low[i] + (high[i] - low[i]) * share);
  return [mixChannel(0), mixChannel(1), mixChannel(2)];
}
