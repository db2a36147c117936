/** The map and its points, of one version. */

import { api, ApiError } from "../api/client";
import type { MapStatus } from "../api/types";
import type { MapMethod } from "../api/client";
import { type Points, readPoints } from "./points";

const TRIES = 3; // while the collection changes

/** Whether the service says that the map is another by now. */
export function isAnother(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}

/** The facts of a map, then its points; both again when it changed in between. */
export async function askMap(
  method: MapMethod,
  signal: AbortSignal,
  from: Pick<typeof api, "map" | "mapPoints"> = api,
): Promise<{ about: MapStatus; points: Points }> {
  for (let left = TRIES - 1; ; left -= 1) {
    const about = await from.map(method, signal);
    try {
      return { about, points: readPoints(await from.mapPoints(method, about.version, signal)) };
    } catch (error) {
      if (!left || !isAnother(error)) throw error;
    }
  }
}
