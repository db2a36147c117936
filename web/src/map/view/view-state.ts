/** State of the map that survives a change of the page. */

import { createStore } from "../../base/store";
import type { Camera } from "../stage/camera";

/** Ids of the selected items. */
export const selectedItems = createStore<ReadonlySet<number>>(new Set());

const cameras = new Map<string, Camera>();

export function readCamera(version: string): Camera | null {
  return cameras.get(version) ?? null;
}

export function storeCamera(version: string, camera: Camera): void {
  cameras.set(version, { ...camera });
}
