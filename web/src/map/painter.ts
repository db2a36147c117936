/** Drawing points: by the graphics card where there is one, else by hand into a picture. */

import { cardPainter } from "./card-painter";
import type { Look } from "./colours";
import { handPainter } from "./hand-painter";

export interface Frame {
  width: number; // pixels of the screen itself
  height: number;
  left: number; // of the map, at the upper left corner of the screen
  top: number;
  scale: number; // pixels of the screen itself that a unit of the map is
  size: number; // of a point, in the same
  cover: number; // how much of what is below a point it covers, from 0 to 1
  looking: boolean; // at a label
}

export interface Painter {
  readonly canvas: HTMLCanvasElement;
  readonly kind: "card" | "hand";
  points: (xy: Uint16Array<ArrayBufferLike>) => void;
  /** What is known of each point (see points.ts), and whether it is selected. */
  states: (codes: Uint8Array, chosen: Uint8Array) => void;
  look: (look: Look) => void;
  draw: (frame: Frame) => void;
  close: () => void;
}

/** The quicker of both; `lost` is told when the card is taken away. */
export function painter(lost: () => void): Painter {
  return cardPainter(lost) ?? handPainter();
}
