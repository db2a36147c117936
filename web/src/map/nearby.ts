/** Finding points: the nearest, and those within an outline. A grid of cells, each with its points side by side. */

import { SIDE } from "./points";

const CELLS = 256; // along a side
const SHIFT = 8; // a cell is 2 ** SHIFT wide

export type Outline = readonly (readonly [number, number])[]; // corners, in the units of points

export class Nearby {
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

  /** The point nearest to a place, no farther than `within`; -1: there is none. Of those at one place the last, which is drawn over the others. */
  nearest(x: number, y: number, within: number): number {
    let [best, distance] = [-1, within * within];
    this.each(x - within, y - within, x + within, y + within, (i) => {
      const d = (this.xy[2 * i]! - x) ** 2 + (this.xy[2 * i + 1]! - y) ** 2;
      if (d < distance || (d === distance && i > best)) [best, distance] = [i, d];
    });
    return best;
  }

  /** The points within an outline, which closes by itself and may cross itself, ascending. */
  within(outline: Outline): number[] {
    const [xs, ys] = [outline.map((p) => p[0]), outline.map((p) => p[1])];
    const found: number[] = [];
    if (outline.length < 3) return found;
    this.each(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (i) => {
      if (inside(outline, this.xy[2 * i]!, this.xy[2 * i + 1]!)) found.push(i);
    });
    return found.sort((a, b) => a - b);
  }

  /** The points in a rectangle, ascending. */
  inBox(left: number, top: number, right: number, bottom: number): number[] {
    const found: number[] = [];
    this.each(left, top, right, bottom, (i) => found.push(i));
    return found.sort((a, b) => a - b);
  }

  private each(left: number, top: number, right: number, bottom: number, take: (i: number) => void): void {
    if (!(left <= SIDE && top <= SIDE && right >= 0 && bottom >= 0)) return;
    const to = (value: number): number => Math.max(0, Math.min(SIDE, value)) >> SHIFT;
    for (let row = to(top); row <= to(bottom); row += 1) {
      const [from, until] = [this.starts[row * CELLS + to(left)]!, this.starts[row * CELLS + to(right) + 1]!];
      for (let at = from; at < until; at += 1) {
        const i = this.order[at]!;
        const [x, y] = [this.xy[2 * i]!, this.xy[2 * i + 1]!];
        if (x >= left && x <= right && y >= top && y <= bottom) take(i);
      }
    }
  }
}

/** Whether a line from a place to the right crosses the outline an odd number of times. */
export function inside(outline: Outline, x: number, y: number): boolean {
  let odd = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i, i += 1) {
    const [[ax, ay], [bx, by]] = [outline[i]!, outline[j]!];
    if (ay > y !== by > y && x < ax + ((bx - ax) * (y - ay)) / (by - ay)) odd = !odd;
  }
  return odd;
}
