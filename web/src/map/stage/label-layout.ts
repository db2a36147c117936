/** Layout of label names on the map: most items first, no overlaps, more with the zoom. */

export interface MapLabel {
  label: string;
  x: number; // in map units
  y: number;
  weight: number; // number of items; sets the size of the name
}

export interface PlacedLabel {
  mapLabel: MapLabel;
  text: string; // what is written
  x: number; // centre, in pixels from the corner of the whole map at this scale
  y: number; // a little above its position
  width: number;
  height: number;
  size: number; // font size in pixels
}

const GAP = 6; // pixels between two names
const LIFT = 9; // pixels, so that a small group is not hidden by its name
const CELL_SIZE = 128;
const BASE_COUNT = 36;
const MAX_LETTERS = 30;

/** Compute the most names at a zoom; twice the zoom is four times the area. */
export function computeLabelLimit(zoom: number): number {
  return Math.round(BASE_COUNT * Math.max(0.5, zoom) ** 1.4);
}

/** Place the names at a scale; independent of the visible part, so that moving the map shows and hides none. */
export function placeLabels(
  labels: readonly MapLabel[],
  scale: number,
  zoom: number,
  measure: (text: string, size: number) => number,
): PlacedLabel[] {
  const cells = new Map<string, PlacedLabel[]>();
  const placedLabels: PlacedLabel[] = [];
  const heaviest = Math.log1p(labels[0]?.weight ?? 1) || 1;
  for (const label of labels.slice(0, computeLabelLimit(zoom))) {
    const size = Math.round(11 + 5 * (Math.log1p(label.weight) / heaviest));
    const text = shortenName(label.label);
    const candidate: PlacedLabel = {
      mapLabel: label,
      text,
      size,
      x: label.x * scale,
      y: label.y * scale - LIFT,
      width: measure(text, size) + GAP,
      height: size + GAP,
    };
    const cellKeys = listCells(candidate);
    if (cellKeys.some((key) => cells.get(key)?.some((placedLabel) => overlaps(candidate, placedLabel)))) continue;
    placedLabels.push(candidate);
    for (const key of cellKeys) cells.set(key, [...(cells.get(key) ?? []), candidate]);
  }
  return placedLabels;
}

/** Shorten a long name. */
function shortenName(label: string): string {
  const letters = [...label];
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join("")}…` : label;
}

function overlaps(a: PlacedLabel, b: PlacedLabel): boolean {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

function listCells(label: PlacedLabel): string[] {
  const keys: string[] = [];
  const toCell = (value: number): number => Math.floor(value / CELL_SIZE);
  for (let x = toCell(label.x - label.width / 2); x <= toCell(label.x + label.width / 2); x += 1)
    for (let y = toCell(label.y - label.height / 2); y <= toCell(label.y + label.height / 2); y += 1) keys.push(`${x} ${y}`);
  return keys;
}
