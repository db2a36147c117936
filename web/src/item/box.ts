/** Boxes on pictures, in per cent of their sides, so that the size in which a picture is shown does not matter. */

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

const SMALLEST = 2;
const tenth = (value: number): number => Math.round(value * 10) / 10;
const within = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** The box between two points; null where it is too small to be meant. */
export function between(a: { x: number; y: number }, b: { x: number; y: number }): Box | null {
  const [left, right] = [within(Math.min(a.x, b.x), 0, 100), within(Math.max(a.x, b.x), 0, 100)];
  const [top, bottom] = [within(Math.min(a.y, b.y), 0, 100), within(Math.max(a.y, b.y), 0, 100)];
  const box = { x: tenth(left), y: tenth(top), w: tenth(right - left), h: tenth(bottom - top) };
  return box.w < SMALLEST || box.h < SMALLEST ? null : box;
}

/** As the service is asked: X,Y,W,H in per cent. */
export function regionOf(box: Box): string {
  return [box.x, box.y, box.w, box.h].map((side) => `${side}%`).join(",");
}

export function boxOf(region: string): Box | null {
  const sides = /^([\d.]+)%,([\d.]+)%,([\d.]+)%,([\d.]+)%$/.exec(region)?.slice(1).map(Number);
  if (!sides || sides.some((side) => !(side >= 0 && side <= 100))) return null;
  const [x, y, w, h] = sides as [number, number, number, number];
  return { x, y, w: Math.min(w, 100 - x), h: Math.min(h, 100 - y) };
}

/** A box that the arrow keys move, or resize with Shift. */
export function nudged(box: Box, key: string, resize: boolean): Box {
  const across = key === "ArrowLeft" ? -2 : key === "ArrowRight" ? 2 : 0;
  const down = key === "ArrowUp" ? -2 : key === "ArrowDown" ? 2 : 0;
  if (resize) return { ...box, w: within(box.w + across, 4, 100 - box.x), h: within(box.h + down, 4, 100 - box.y) };
  return { ...box, x: within(box.x + across, 0, 100 - box.w), y: within(box.y + down, 0, 100 - box.h) };
}
