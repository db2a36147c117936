/** What the page remembers while others are looked at. */

import { store } from "../base/store";
import type { Camera } from "./camera";

/** Items that are selected. */
export const selected = store<ReadonlySet<number>>(new Set());

const cameras = new Map<string, Camera>();

export function cameraOf(version: string): Camera | null {
  return cameras.get(version) ?? null;
}

export function keepCamera(version: string, camera: Camera): void {
  cameras.set(version, { ...camera });
}
