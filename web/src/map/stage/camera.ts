/** Visible part of the map: the centre, and the size of a map unit on the screen. */

import { SIDE } from "../data/points";

export interface Size {
  width: number; // CSS pixels
  height: number;
}

export interface Camera {
  x: number; // the centre, in map units
  y: number;
  scale: number; // CSS pixels of a map unit
}

const MAX_ZOOM = 400; // relative to the whole map
const MARGIN = 0.9;

/** Compute the scale that shows the whole map. */
export function computeFullScale(size: Size): number {
  return (MARGIN * Math.max(40, Math.min(size.width, size.height))) / SIDE;
}

/** Create a camera that shows the whole map. */
export function createCamera(size: Size): Camera {
  return { x: SIDE / 2, y: SIDE / 2, scale: computeFullScale(size) };
}

/** Compute the zoom: 1 shows the whole map. */
export function computeZoom(camera: Camera, size: Size): number {
  return camera.scale / computeFullScale(size);
}

export function projectToScreen(camera: Camera, size: Size, x: number, y: number): [number, number] {
  return [(x - camera.x) * camera.scale + size.width / 2, (y - camera.y) * camera.scale + size.height / 2];
}

export function projectToMap(camera: Camera, size: Size, x: number, y: number): [number, number] {
  return [(x - size.width / 2) / camera.scale + camera.x, (y - size.height / 2) / camera.scale + camera.y];
}

/** Move by a number of pixels; the centre stays on the map. */
export function panCamera(camera: Camera, dx: number, dy: number): Camera {
  const clamp = (value: number): number => Math.max(0, Math.min(SIDE, value));
  return { ...camera, x: clamp(camera.x - dx / camera.scale), y: clamp(camera.y - dy / camera.scale) };
}

/** Zoom by a factor about a fixed position on the screen. */
export function zoomCamera(camera: Camera, size: Size, factor: number, x = size.width / 2, y = size.height / 2): Camera {
  const minScale = 0.5 * computeFullScale(size);
  const scale = Math.max(minScale, Math.min(2 * MAX_ZOOM * minScale, camera.scale * factor));
  const [mx, my] = projectToMap(camera, size, x, y);
  const scaled = { scale, x: mx - (x - size.width / 2) / scale, y: my - (y - size.height / 2) / scale };
  return panCamera(scaled, 0, 0);
}

/** Compute the size of points in pixels; it falls with their number and grows with the zoom. */
export function computePointSize(n: number, size: Size, zoom: number): number {
  const roomFactor = Math.min(1, Math.min(size.width, size.height) / 600);
  const base = Math.max(2.2, Math.min(8, (260 * roomFactor) / Math.sqrt(Math.max(n, 1))));
  return Math.min(14, base * Math.max(1, zoom) ** 0.4);
}

/** Compute the opacity of points; it falls with their number, so that dense places stand out. */
export function computeOpacity(n: number, zoom: number): number {
  return Math.max(0.3, Math.min(0.85, 3.8 * (Math.max(n, 1) / Math.max(1, zoom) ** 2) ** -0.22));
}
