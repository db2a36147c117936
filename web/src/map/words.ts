/** Names of labels over the points: those with most items first, none over another, more as one comes nearer. */

export interface Word {
  label: string;
  x: number; // in the units of points
  y: number;
  weight: number; // items, by which large names are larger
}

export interface Placed {
  word: Word;
  text: string; // what is written
  x: number; // the middle, in pixels from the corner of the whole map at this scale
  y: number; // a little above its place
  width: number;
  height: number;
  size: number; // of its letters
}

const APART = 6; // pixels between two
const ABOVE = 9; // pixels, so that a small group is not hidden by its name
const CELL = 128;
const AT_FIRST = 36;
const LETTERS = 30;

/** How many may be shown; nearer by two is four times the room. */
export function most(zoom: number): number {
  return Math.round(AT_FIRST * Math.max(0.5, zoom) ** 1.4);
}

/** Where names go at a scale. `measure` tells how wide a name is in letters of a size. Which are shown does not depend on what part is seen, so that none comes or goes while the map is moved. */
export function placed(
  words: readonly Word[],
  scale: number,
  zoom: number,
  measure: (text: string, size: number) => number,
): Placed[] {
  const cells = new Map<string, Placed[]>();
  const found: Placed[] = [];
  const heaviest = Math.log1p(words[0]?.weight ?? 1) || 1;
  for (const word of words.slice(0, most(zoom))) {
    const size = Math.round(11 + 5 * (Math.log1p(word.weight) / heaviest));
    const text = short(word.label);
    const one: Placed = {
      word,
      text,
      size,
      x: word.x * scale,
      y: word.y * scale - ABOVE,
      width: measure(text, size) + APART,
      height: size + APART,
    };
    const around = cellsOf(one);
    if (around.some((key) => cells.get(key)?.some((other) => over(one, other)))) continue;
    found.push(one);
    for (const key of around) cells.set(key, [...(cells.get(key) ?? []), one]);
  }
  return found;
}

/** A name that would lie across the map is cut. */
function short(label: string): string {
  const letters = [...label];
  return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join("")}…` : label;
}

function over(a: Placed, b: Placed): boolean {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

function cellsOf(one: Placed): string[] {
  const keys: string[] = [];
  const at = (value: number): number => Math.floor(value / CELL);
  for (let x = at(one.x - one.width / 2); x <= at(one.x + one.width / 2); x += 1)
    for (let y = at(one.y - one.height / 2); y <= at(one.y + one.height / 2); y += 1) keys.push(`${x} ${y}`);
  return keys;
}
