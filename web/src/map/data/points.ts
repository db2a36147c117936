/** Decoding of points and label codes; see the route /map/points. */

/** Codes of an item for a label; SUGGESTED to 255 grow with the probability. */
export const UNKNOWN = 0;
export const REJECTED = 1;
export const ACCEPTED = 2;
export const SUGGESTED = 3;

/** Side of the square that holds all points. */
export const SIDE = 65535;

export interface Points {
  ids: Float64Array; // ascending
  xy: Uint16Array; // x and y of each point, from the upper left corner
}

/** Read ids, stored as differences, and the content after them. */
function readBlock(buffer: ArrayBuffer, bytesEach: number): { ids: Float64Array; content: ArrayBuffer } {
  const n = buffer.byteLength >= 4 ? new DataView(buffer).getUint32(0, true) : -1;
  if (buffer.byteLength !== 4 + n * (4 + bytesEach)) throw new Error("the map is incomplete; load the page again");
  const steps = new Uint32Array(buffer, 4, n);
  const ids = new Float64Array(n);
  let id = 0;
  for (let i = 0; i < n; i += 1) ids[i] = id += steps[i]!;
  return { ids, content: buffer.slice(4 + 4 * n) };
}

export function readPoints(buffer: ArrayBuffer): Points {
  const { ids, content } = readBlock(buffer, 4);
  const xy = new Uint16Array(content);
  for (let i = 1; i < xy.length; i += 2) xy[i] = SIDE - xy[i]!; // y grows downwards on the screen
  return { ids, xy };
}

/** Read the code of each point for a label. */
export function readCodes(buffer: ArrayBuffer, points: Points): Uint8Array<ArrayBuffer> {
  const { ids, content } = readBlock(buffer, 1);
  const codeValues = new Uint8Array(content);
  const codes = new Uint8Array(points.ids.length);
  let position = 0;
  ids.forEach((id, i) => {
    while (position < points.ids.length && points.ids[position]! < id) position += 1;
    if (points.ids[position] === id) codes[position] = codeValues[i]!;
  });
  return codes;
}

/** Return the probability of a code; null if it is not a suggestion. */
export function decodeProbability(code: number): number | null {
  return code < SUGGESTED ? null : (code - SUGGESTED) / (255 - SUGGESTED);
}

/** Mark the points of some items. */
export function markPoints(points: Points, ids: ReadonlySet<number>): Uint8Array<ArrayBuffer> {
  const marks = new Uint8Array(points.ids.length);
  if (ids.size) points.ids.forEach((id, i) => (marks[i] = ids.has(id) ? 1 : 0));
  return marks;
}
