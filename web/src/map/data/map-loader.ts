/** Loading of a map and its points in one version. */

import { api, ApiError } from "../../api/client";
import type { MapStatus } from "../../api/types";
import type { MapMethod } from "../../api/client";
import { type Points, readPoints } from "./points";

const MAX_ATTEMPTS = 3; // if the map changes between the requests

/** True if the service reports that the map has changed. */
export function isOutdated(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}

/** Load the status of a map, then its points; both again if it changed in between. */
export async function loadMap(
  method: MapMethod,
  signal: AbortSignal,
  service: Pick<typeof api, "getMap" | "getMapPoints"> = api,
): Promise<{ mapStatus: MapStatus; points: Points }> {
  for (let attemptsLeft = MAX_ATTEMPTS - 1; ; attemptsLeft -= 1) {
    const mapStatus = await service.getMap(method, signal);
    try {
      return { mapStatus, points: readPoints(await service.getMapPoints(method, mapStatus.version, signal)) };
    } catch (error) {
      if (!attemptsLeft || !isOutdated(error)) throw error;
    }
  }
}
