/** Points without a graphics card: each is stamped into the pixels of a picture. */

import { between, type Colour, type Look } from "./colours";
import type { Frame, Painter } from "./painter";
import { ACCEPTED, NOTHING, probability, REJECTED } from "./points";

/** Pixels of a point around its middle, and which of these are its rim. */
interface Stamp {
  dx: Int16Array;
  dy: Int16Array;
  rim: Uint8Array;
}

export function stamp(size: number, shape: "disc" | "cross" | "ring"): Stamp {
  const radius = Math.max(0.5, size / 2);
  const [dx, dy, rim]: [number[], number[], number[]] = [[], [], []];
  const reach = Math.ceil(radius);
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      const far = Math.hypot(x, y) / radius;
      if (far > 1 || (shape === "cross" && Math.abs(Math.abs(x) - Math.abs(y)) > 0.42 * radius)) continue;
      dx.push(x);
      dy.push(y);
      rim.push(shape === "ring" && far > 0.5 ? 1 : 0);
    }
  }
  return { dx: Int16Array.from(dx), dy: Int16Array.from(dy), rim: Uint8Array.from(rim) };
}

const CROWD = 24; // points over each other, of which more look no different

export function handPainter(): Painter {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  let xy: Uint16Array<ArrayBufferLike> = new Uint16Array(0);
  let codes: Uint8Array = new Uint8Array(0);
  let chosen: Uint8Array = new Uint8Array(0);
  let look: Look | null = null;
  let image: ImageData | null = null;
  let crowd = new Uint8Array(0); // plain points over each pixel
  return {
    canvas,
    kind: "hand",
    points: (next) => {
      xy = next;
      [codes, chosen] = [new Uint8Array(xy.length / 2), new Uint8Array(xy.length / 2)];
    },
    states: (nextCodes, nextChosen) => {
      [codes, chosen] = [nextCodes, nextChosen];
    },
    look: (next) => {
      look = next;
    },
    draw: (frame) => {
      if (!look) return;
      if (!image || image.width !== frame.width || image.height !== frame.height) {
        canvas.width = frame.width;
        canvas.height = frame.height;
        image = context.createImageData(frame.width, frame.height);
        crowd = new Uint8Array(frame.width * frame.height);
      }
      const pixels = new Uint32Array(image.data.buffer);
      const over = drawPlain(frame, xy, codes, chosen, crowd.fill(0));
      const shades = shadesOf(frame.looking ? look.faint : look.plain, frame.cover);
      for (let k = 0; k < pixels.length; k += 1) pixels[k] = shades[crowd[k]!]!;
      drawMarked(frame, xy, codes, chosen, over, look, pixels);
      context.putImageData(image, 0, 0);
    },
    close: () => undefined,
  };
}

/** Count the plain points over each pixel; the others, which are drawn over these. */
function drawPlain(frame: Frame, xy: ArrayLike<number>, codes: Uint8Array, chosen: Uint8Array, crowd: Uint8Array): number[] {
  const disc = stamp(frame.size, "disc");
  const over: number[] = [];
  for (let i = 0; i < codes.length; i += 1) {
    if (codes[i] || chosen[i]) over.push(i);
    else
      put(frame, xy, i, disc, (at) => {
        if (crowd[at]! < CROWD) crowd[at]! += 1;
      });
  }
  return over;
}

function drawMarked(
  frame: Frame,
  xy: ArrayLike<number>,
  codes: Uint8Array,
  chosen: Uint8Array,
  which: readonly number[],
  look: Look,
  pixels: Uint32Array,
): void {
  const [large, cross, ring] = [stamp(1.4 * frame.size, "disc"), stamp(1.4 * frame.size, "cross"), stamp(1.9 * frame.size, "ring")];
  const palette = Uint32Array.from({ length: 256 }, (_, code) => pixel(colourOf(code, look)));
  palette[NOTHING] = pixel(frame.looking ? look.faint : look.plain);
  const picked = pixel(look.chosen);
  for (const i of which) {
    const colour = palette[codes[i]!]!;
    put(frame, xy, i, chosen[i] ? ring : codes[i] === REJECTED ? cross : large, (at, rim) => {
      pixels[at] = rim ? picked : colour;
    });
  }
}

/** The pixels of a point that are on the screen. */
function put(frame: Frame, xy: ArrayLike<number>, i: number, with_: Stamp, each: (at: number, rim: boolean) => void): void {
  const x = Math.round((xy[2 * i]! - frame.left) * frame.scale);
  const y = Math.round((xy[2 * i + 1]! - frame.top) * frame.scale);
  const { dx, dy, rim } = with_;
  const reach = dy[dy.length - 1]! + 1;
  if (x < -reach || y < -reach || x > frame.width + reach || y > frame.height + reach) return;
  for (let k = 0; k < dx.length; k += 1) {
    const [px, py] = [x + dx[k]!, y + dy[k]!];
    if (px >= 0 && py >= 0 && px < frame.width && py < frame.height) each(py * frame.width + px, rim[k] === 1);
  }
}

/** A colour under so many veils. */
function shadesOf(colour: Colour, cover: number): Uint32Array {
  return Uint32Array.from({ length: CROWD + 1 }, (_, n) => pixel(colour, 1 - (1 - cover) ** n));
}

function colourOf(code: number, look: Look): Colour {
  if (code === ACCEPTED) return look.accepted;
  if (code === REJECTED) return look.rejected;
  return between(look.low, look.high, probability(code) ?? 0);
}

/** As pictures keep it: red first in memory. */
function pixel([red, green, blue]: Colour, cover = 1): number {
  return ((Math.round(255 * cover) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
