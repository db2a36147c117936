/** Boxes on pictures, in per cent of the sides, independent of the displayed size. */

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

const MIN_SIDE = 2;
const roundToTenth = (value: number): number => Math.round(value * 10) / 10;
const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** Build the box between two points; null if it is too small. */
export function buildBox(a: { x: number; y: number }, b: { x: number; y: number }): Box | null {
  const [left, right] = [clamp(Math.min(a.x, b.x), 0, 100), clamp(Math.max(a.x, b.x), 0, 100)];
  const [top, bottom] = [clamp(Math.min(a.y, b.y), 0, 100), clamp(Math.max(a.y, b.y), 0, 100)];
  const box = { x: roundToTenth(left), y: roundToTenth(top), w: roundToTenth(right - left), h: roundToTenth(bottom - top) };
  return box.w < MIN_SIDE || box.h < MIN_SIDE ? null : box;
}

/** Format a box for the service: X,Y,W,H in per cent. */
export function formatRegion(box: Box): string {
  return [box.x, box.y, box.w, box.h].map((side) => `${side}%`).join(",");
}

export function parseRegion(region: string): Box | null {
  const sides = /^([\d.]+)%,([\d.]+)%,([\d.]+)%,([\d.]+)%$/.exec(region)?.slice(1).map(Number);
  if (!sides || sides.some((side) => !(side >= 0 && side <= 100))) return null;
  const [x, y, w, h] = sides as [number, number, number, number];
  return { x, y, w: Math.min(w, 100 - x), h: Math.min(h, 100 - y) };
}

/** Move a box by an arrow key, or resize it with Shift. */
export function moveBox(box: Box, key: string, resize: boolean): Box {
  const dx = key === "ArrowLeft" ? -2 : key === "ArrowRight" ? 2 : 0;
  const dy = key === "ArrowUp" ? -2 : key === "ArrowDown" ? 2 : 0;
  if (resize) return { ...box, w: clamp(box.w + dx, 4, 100 - box.x), h: clamp(box.h + dy, 4, 100 - box.y) };
  return { ...box, x: clamp(box.x + dx, 0, 100 - box.w), y: clamp(box.y + dy, 0, 100 - box.h) };
}
