/** Points and colours as the service sends them; see its route /map/points. */

/** What is known of an item and a label; from SUGGESTED to 255: suggested, the surer the higher. */
export const NOTHING = 0;
export const REJECTED = 1;
export const ACCEPTED = 2;
export const SUGGESTED = 3;

/** Sides of the square that all points lie in. */
export const SIDE = 65535;

export interface Points {
  ids: Float64Array; // ascending
  xy: Uint16Array; // x and y of one after the other, from the upper left corner
}

/** Numbers as steps from one to the next, and what stands behind them. */
function read(buffer: ArrayBuffer, bytesEach: number): { ids: Float64Array; rest: ArrayBuffer } {
  const n = buffer.byteLength >= 4 ? new DataView(buffer).getUint32(0, true) : -1;
  if (buffer.byteLength !== 4 + n * (4 + bytesEach)) throw new Error("the map came in pieces; load the page again");
  const steps = new Uint32Array(buffer, 4, n);
  const ids = new Float64Array(n);
  let id = 0;
  for (let i = 0; i < n; i += 1) ids[i] = id += steps[i]!;
  return { ids, rest: buffer.slice(4 + 4 * n) };
}

export function readPoints(buffer: ArrayBuffer): Points {
  const { ids, rest } = read(buffer, 4);
  const xy = new Uint16Array(rest);
  for (let i = 1; i < xy.length; i += 2) xy[i] = SIDE - xy[i]!; // up is up
  return { ids, xy };
}

/** What is known of a label, for each of the points. */
export function readCodes(buffer: ArrayBuffer, points: Points): Uint8Array<ArrayBuffer> {
  const { ids, rest } = read(buffer, 1);
  const given = new Uint8Array(rest);
  const codes = new Uint8Array(points.ids.length);
  let at = 0;
  ids.forEach((id, i) => {
    while (at < points.ids.length && points.ids[at]! < id) at += 1;
    if (points.ids[at] === id) codes[at] = given[i]!;
  });
  return codes;
}

/** The probability behind a code; null: it is no suggestion. */
export function probability(code: number): number | null {
  return code < SUGGESTED ? null : (code - SUGGESTED) / (255 - SUGGESTED);
}

/** Which of the points are among some items. */
export function marked(points: Points, ids: ReadonlySet<number>): Uint8Array<ArrayBuffer> {
  const found = new Uint8Array(points.ids.length);
  if (ids.size) points.ids.forEach((id, i) => (found[i] = ids.has(id) ? 1 : 0));
  return found;
}
