/** Painter without a graphics card: stamps each point into the pixels of a canvas. */

import { mixColours, type Colour, type PointColours } from "./colours";
import type { Frame, Painter } from "./painter";
import { ACCEPTED, UNKNOWN, decodeProbability, REJECTED } from "../data/points";

/** Pixels of a point relative to its centre; `rim` marks those of the border. */
interface Stamp {
  dx: Int16Array;
  dy: Int16Array;
  rim: Uint8Array;
}

export function createStamp(size: number, shape: "disc" | "cross" | "ring"): Stamp {
  const radius = Math.max(0.5, size / 2);
  const [dx, dy, rim]: [number[], number[], number[]] = [[], [], []];
  const reach = Math.ceil(radius);
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      const distance = Math.hypot(x, y) / radius;
      if (distance > 1 || (shape === "cross" && Math.abs(Math.abs(x) - Math.abs(y)) > 0.42 * radius)) continue;
      dx.push(x);
      dy.push(y);
      rim.push(shape === "ring" && distance > 0.5 ? 1 : 0);
    }
  }
  return { dx: Int16Array.from(dx), dy: Int16Array.from(dy), rim: Uint8Array.from(rim) };
}

const MAX_OVERLAP = 24; // more points over each other look the same

export function createCanvasPainter(): Painter {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  let xy: Uint16Array<ArrayBufferLike> = new Uint16Array(0);
  let codes: Uint8Array = new Uint8Array(0);
  let selected: Uint8Array = new Uint8Array(0);
  let colours: PointColours | null = null;
  let image: ImageData | null = null;
  let overlap = new Uint8Array(0); // number of plain points on each pixel
  return {
    canvas,
    kind: "canvas",
    setPoints: (next) => {
      xy = next;
      [codes, selected] = [new Uint8Array(xy.length / 2), new Uint8Array(xy.length / 2)];
    },
    setStates: (nextCodes, nextSelected) => {
      [codes, selected] = [nextCodes, nextSelected];
    },
    setColours: (next) => {
      colours = next;
    },
    draw: (frame) => {
      if (!colours) return;
      if (!image || image.width !== frame.width || image.height !== frame.height) {
        canvas.width = frame.width;
        canvas.height = frame.height;
        image = context.createImageData(frame.width, frame.height);
        overlap = new Uint8Array(frame.width * frame.height);
      }
      const pixels = new Uint32Array(image.data.buffer);
      const markedPoints = countPlainPoints(frame, xy, codes, selected, overlap.fill(0));
      const shades = computeShades(frame.hasLabel ? colours.faint : colours.plain, frame.opacity);
      for (let k = 0; k < pixels.length; k += 1) pixels[k] = shades[overlap[k]!]!;
      drawMarkedPoints(frame, xy, codes, selected, markedPoints, colours, pixels);
      context.putImageData(image, 0, 0);
    },
    close: () => undefined,
  };
}

/** Count the plain points on each pixel; return the marked points, which are drawn over them. */
function countPlainPoints(frame: Frame, xy: ArrayLike<number>, codes: Uint8Array, selected: Uint8Array, overlap: Uint8Array): number[] {
  const disc = createStamp(frame.size, "disc");
  const markedPoints: number[] = [];
  for (let i = 0; i < codes.length; i += 1) {
    if (codes[i] || selected[i]) markedPoints.push(i);
    else
      drawStamp(frame, xy, i, disc, (at) => {
        if (overlap[at]! < MAX_OVERLAP) overlap[at]! += 1;
      });
  }
  return markedPoints;
}

function drawMarkedPoints(
  frame: Frame,
  xy: ArrayLike<number>,
  codes: Uint8Array,
  selected: Uint8Array,
  markedPoints: readonly number[],
  colours: PointColours,
  pixels: Uint32Array,
): void {
  const [large, cross, ring] = [createStamp(1.4 * frame.size, "disc"), createStamp(1.4 * frame.size, "cross"), createStamp(1.9 * frame.size, "ring")];
  const palette = Uint32Array.from({ length: 256 }, (_, code) => packPixel(selectColour(code, colours)));
  palette[UNKNOWN] = packPixel(frame.hasLabel ? colours.faint : colours.plain);
  const selectedPixel = packPixel(colours.selected);
  for (const i of markedPoints) {
    const colour = palette[codes[i]!]!;
    drawStamp(frame, xy, i, selected[i] ? ring : codes[i] === REJECTED ? cross : large, (at, rim) => {
      pixels[at] = rim ? selectedPixel : colour;
    });
  }
}

/** Paint the visible pixels of a point. */
function drawStamp(frame: Frame, xy: ArrayLike<number>, i: number, pointStamp: Stamp, paint: (pixel: number, rim: boolean) => void): void {
  const x = Math.round((xy[2 * i]! - frame.left) * frame.scale);
  const y = Math.round((xy[2 * i + 1]! - frame.top) * frame.scale);
  const { dx, dy, rim } = pointStamp;
  const reach = dy[dy.length - 1]! + 1;
  if (x < -reach || y < -reach || x > frame.width + reach || y > frame.height + reach) return;
  for (let k = 0; k < dx.length; k += 1) {
    const [px, py] = [x + dx[k]!, y + dy[k]!];
    if (px >= 0 && py >= 0 && px < frame.width && py < frame.height) paint(py * frame.width + px, rim[k] === 1);
  }
}

/** Compute a colour for each number of overlapping points. */
function computeShades(colour: Colour, opacity: number): Uint32Array {
  return Uint32Array.from({ length: MAX_OVERLAP + 1 }, (_, n) => packPixel(colour, 1 - (1 - opacity) ** n));
}

function selectColour(code: number, colours: PointColours): Colour {
  if (code === ACCEPTED) return colours.accepted;
  if (code === REJECTED) return colours.rejected;
  return mixColours(colours.low, colours.high, decodeProbability(code) ?? 0);
}

/** Pack a colour as ImageData stores it: red first in memory. */
function packPixel([red, green, blue]: Colour, opacity = 1): number {
  return ((Math.round(255 * opacity) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
