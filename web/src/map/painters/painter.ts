/** Painter of points: WebGL with a graphics card, else a canvas. */

import { createWebglPainter } from "./webgl-painter";
import type { PointColours } from "./colours";
import { createCanvasPainter } from "./canvas-painter";

export interface Frame {
  width: number; // device pixels
  height: number;
  left: number; // map coordinates of the upper left corner
  top: number;
  scale: number; // device pixels of a map unit
  size: number; // device pixels of a point
  opacity: number; // of a point, from 0 to 1
  hasLabel: boolean; // the points are coloured by a label
}

export interface Painter {
  readonly canvas: HTMLCanvasElement;
  readonly kind: "webgl" | "canvas";
  setPoints: (xy: Uint16Array<ArrayBufferLike>) => void;
  /** Set the code (see points.ts) and the selection of each point. */
  setStates: (codes: Uint8Array, selection: Uint8Array) => void;
  setColours: (setColours: PointColours) => void;
  draw: (frame: Frame) => void;
  close: () => void;
}

/** Create the faster painter; `onContextLoss` is called when the graphics card is lost. */
export function createPainter(onContextLoss: () => void): Painter {
  return createWebglPainter(onContextLoss) ?? createCanvasPainter();
}
