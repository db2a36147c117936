/** Spatial index of the points: a grid of cells with the points of each side by side. */

import { SIDE } from "./points";

const CELLS = 256; // along a side
const SHIFT = 8; // a cell is 2 ** SHIFT wide

export type Outline = readonly (readonly [number, number])[]; // corners, in the units of points

export class PointIndex {
  private readonly starts = new Uint32Array(CELLS * CELLS + 1);
  private readonly order: Uint32Array;

  constructor(private readonly xy: Uint16Array) {
    const n = xy.length / 2;
    const cell = (i: number): number => (xy[2 * i + 1]! >> SHIFT) * CELLS + (xy[2 * i]! >> SHIFT);
    for (let i = 0; i < n; i += 1) this.starts[cell(i) + 1]! += 1;
    for (let c = 0; c < CELLS * CELLS; c += 1) this.starts[c + 1]! += this.starts[c]!;
    const next = this.starts.slice();
    this.order = new Uint32Array(n);
    for (let i = 0; i < n; i += 1) this.order[next[cell(i)]!++] = i;
  }

  /** Find the point nearest to a position within `radius`, -1 if none; of equal ones the last, which is drawn on top. */
  findNearest(x: number, y: number, findInOutline: number): number {
    let [best, distance] = [-1, findInOutline * findInOutline];
    this.visitBox(x - findInOutline, y - findInOutline, x + findInOutline, y + findInOutline, (i) => {
      const d = (this.xy[2 * i]! - x) ** 2 + (this.xy[2 * i + 1]! - y) ** 2;
      if (d < distance || (d === distance && i > best)) [best, distance] = [i, d];
    });
    return best;
  }

  /** Find the points within an outline, ascending; it is closed, and may cross itself. */
  findInOutline(outline: Outline): number[] {
    const [xs, ys] = [outline.map((p) => p[0]), outline.map((p) => p[1])];
    const points: number[] = [];
    if (outline.length < 3) return points;
    this.visitBox(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (i) => {
      if (isInside(outline, this.xy[2 * i]!, this.xy[2 * i + 1]!)) points.push(i);
    });
    return points.sort((a, b) => a - b);
  }

  /** Find the points in a rectangle, ascending. */
  findInBox(left: number, top: number, right: number, bottom: number): number[] {
    const points: number[] = [];
    this.visitBox(left, top, right, bottom, (i) => points.push(i));
    return points.sort((a, b) => a - b);
  }

  private visitBox(left: number, top: number, right: number, bottom: number, visit: (i: number) => void): void {
    if (!(left <= SIDE && top <= SIDE && right >= 0 && bottom >= 0)) return;
    const toCell = (value: number): number => Math.max(0, Math.min(SIDE, value)) >> SHIFT;
    for (let row = toCell(top); row <= toCell(bottom); row += 1) {
      const [start, end] = [this.starts[row * CELLS + toCell(left)]!, this.starts[row * CELLS + toCell(right) + 1]!];
      for (let place = start; place < end; place += 1) {
        const i = this.order[place]!;
        const [x, y] = [this.xy[2 * i]!, this.xy[2 * i + 1]!];
        if (x >= left && x <= right && y >= top && y <= bottom) visit(i);
      }
    }
  }
}

/** True if a ray to the right crosses the outline an odd number of times. */
export function isInside(outline: Outline, x: number, y: number): boolean {
  let isOdd = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i, i += 1) {
    const [[ax, ay], [bx, by]] = [outline[i]!, outline[j]!];
    if (ay > y !== by > y && x < ax + ((bx - ax) * (y - ay)) / (by - ay)) isOdd = !isOdd;
  }
  return isOdd;
}
