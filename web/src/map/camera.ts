/** What part of the map is seen: which point is in the middle, and how large a unit of points is on the screen. */

import { SIDE } from "./points";

export interface Size {
  width: number; // pixels as pages count them
  height: number;
}

export interface Camera {
  x: number; // the point in the middle
  y: number;
  scale: number; // pixels of a unit
}

const MOST = 400; // times the whole map
const MARGIN = 0.9;

/** The scale at which the whole map is seen. */
export function wholeScale(size: Size): number {
  return (MARGIN * Math.max(40, Math.min(size.width, size.height))) / SIDE;
}

/** The whole map. */
export function whole(size: Size): Camera {
  return { x: SIDE / 2, y: SIDE / 2, scale: wholeScale(size) };
}

/** How far it is zoomed in: 1 = the whole map is seen. */
export function zoomOf(camera: Camera, size: Size): number {
  return camera.scale / wholeScale(size);
}

export function toScreen(camera: Camera, size: Size, x: number, y: number): [number, number] {
  return [(x - camera.x) * camera.scale + size.width / 2, (y - camera.y) * camera.scale + size.height / 2];
}

export function toMap(camera: Camera, size: Size, x: number, y: number): [number, number] {
  return [(x - size.width / 2) / camera.scale + camera.x, (y - size.height / 2) / camera.scale + camera.y];
}

/** Moved by so many pixels; the middle stays over the map. */
export function moved(camera: Camera, dx: number, dy: number): Camera {
  const kept = (value: number): number => Math.max(0, Math.min(SIDE, value));
  return { ...camera, x: kept(camera.x - dx / camera.scale), y: kept(camera.y - dy / camera.scale) };
}

/** Nearer or farther by a factor, about a place on the screen that stays where it is. */
export function zoomed(camera: Camera, size: Size, factor: number, x = size.width / 2, y = size.height / 2): Camera {
  const least = 0.5 * wholeScale(size);
  const scale = Math.max(least, Math.min(2 * MOST * least, camera.scale * factor));
  const [mx, my] = toMap(camera, size, x, y);
  const there = { scale, x: mx - (x - size.width / 2) / scale, y: my - (y - size.height / 2) / scale };
  return moved(there, 0, 0);
}

/** How large points are, in pixels: many are small, and all grow as one comes nearer. */
export function pointSize(n: number, size: Size, zoom: number): number {
  const room = Math.min(1, Math.min(size.width, size.height) / 600);
  const base = Math.max(2.2, Math.min(8, (260 * room) / Math.sqrt(Math.max(n, 1))));
  return Math.min(14, base * Math.max(1, zoom) ** 0.4);
}

/** How much of what is below a point it covers: little where there are many, so that crowds are seen. */
export function cover(n: number, zoom: number): number {
  return Math.max(0.3, Math.min(0.85, 3.8 * (Math.max(n, 1) / Math.max(1, zoom) ** 2) ** -0.22));
}
