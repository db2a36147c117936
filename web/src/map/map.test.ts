import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import type { MapStatus } from "../api/types";
import { loadMap } from "./data/map-loader";
import { panCamera, projectToMap, projectToScreen, createCamera, zoomCamera, computeZoom } from "./stage/camera";
import { mixColours, parseColour } from "./painters/colours";
import { createStamp } from "./painters/canvas-painter";
import { isInside, PointIndex } from "./data/point-index";
import { markPoints, decodeProbability, readCodes, readPoints, SIDE } from "./data/points";
import { computeLabelLimit, placeLabels } from "./stage/label-layout";

/** Encode a block as the service does. */
function encodeBlock(steps: number[], values: Uint8Array): ArrayBuffer {
  const head = new Uint8Array(Uint32Array.from([steps.length, ...steps]).buffer);
  const block = new Uint8Array(head.length + values.length);
  block.set(head);
  block.set(values, head.length);
  return block.buffer;
}
const bytes = (numbers: number[]): Uint8Array => new Uint8Array(Uint16Array.from(numbers).buffer);

describe("a map that changes while it is asked for", () => {
  const conflict = new ApiError(409, "the map has changed");
  const createService = (failures: number) => {
    const versions: string[] = [];
    let turn = 0;
    const getMap = async () => ({ version: `v${(turn += 1)}` }) as MapStatus;
    const getMapPoints = async (_: string, version: string) => {
      versions.push(version);
      if (versions.length <= failures) throw conflict;
      return encodeBlock([turn], bytes([0, 0]));
    };
    return { versions, getMap, getMapPoints };
  };

  it("is asked for again, so that facts and points are of one version", async () => {
    const service = createService(1);
    const { mapStatus, points } = await loadMap("pca", new AbortController().signal, service);
    expect([mapStatus.version, [...points.ids], service.versions]).toEqual(["v2", [2], ["v1", "v2"]]);
  });

  it("is not asked for without end", async () => {
    const service = createService(9);
    await expect(loadMap("pca", new AbortController().signal, service)).rejects.toBe(conflict);
    expect(service.versions).toHaveLength(3);
  });
});

describe("points", () => {
  const points = readPoints(encodeBlock([3, 1, 5], bytes([0, 0, 10, 20, SIDE, SIDE])));

  it("are numbers by steps, and places from the upper left", () => {
    expect([...points.ids]).toEqual([3, 4, 9]);
    expect([...points.xy]).toEqual([0, SIDE, 10, SIDE - 20, SIDE, 0]);
    expect([...markPoints(points, new Set([9, 3, 7]))]).toEqual([1, 0, 1]);
  });

  it("have codes by their numbers; other items are left out", () => {
    expect([...readCodes(encodeBlock([1, 3, 5, 2], Uint8Array.from([7, 2, 255, 1])), points)]).toEqual([0, 2, 255]);
    expect([decodeProbability(2), decodeProbability(3), decodeProbability(255)]).toEqual([null, 0, 1]);
  });

  it("that are cut off are not a map", () => {
    expect(() => readPoints(encodeBlock([1, 1], bytes([0, 0])))).toThrow("is incomplete");
    expect(() => readPoints(new ArrayBuffer(2))).toThrow("is incomplete");
  });
});

describe("nearby", () => {
  // Compared with a slow search, on points of a fixed sequence.
  let seed = 1;
  const draw = (): number => (seed = (seed * 48271) % 2147483647) % (SIDE + 1);
  const xy = Uint16Array.from({ length: 4000 }, draw);
  const nearby = new PointIndex(xy);

  it("finds what a look at all points finds", () => {
    for (let i = 0; i < 200; i += 1) {
      const [x, y, reach] = [draw(), draw(), 2500];
      let [best, distance] = [-1, reach * reach];
      for (let k = 0; k < xy.length / 2; k += 1) {
        const d = (xy[2 * k]! - x) ** 2 + (xy[2 * k + 1]! - y) ** 2;
        if (d < distance) [best, distance] = [k, d];
      }
      expect(nearby.findNearest(x, y, reach)).toBe(best);
    }
    expect(nearby.findNearest(-1e9, 5, 100)).toBe(-1);
  });

  it("selects what lies within an outline, also a hollow one", () => {
    const outline = [[5000, 5000], [60000, 9000], [30000, 25000], [50000, 60000], [8000, 50000]] as const;
    const indices = Array.from({ length: xy.length / 2 }, (_, i) => i);
    const pointsInOutline = nearby.findInOutline(outline);
    expect(pointsInOutline).toEqual(indices.filter((i) => isInside(outline, xy[2 * i]!, xy[2 * i + 1]!)));
    expect(pointsInOutline.length).toBeGreaterThan(100);
    expect(isInside(outline, 45000, 30000)).toBe(false); // in the notch
    expect(nearby.findInOutline([[0, 0], [9, 9]])).toEqual([]);
    expect(nearby.findInBox(0, 0, SIDE, SIDE)).toEqual(indices);
  });
});

describe("camera", () => {
  const size = { width: 800, height: 600 };

  it("keeps the place under the mouse while it zooms", () => {
    const zoomedCamera = zoomCamera(createCamera(size), size, 3, 200, 450);
    expect(computeZoom(zoomedCamera, size)).toBeCloseTo(3);
    const [x, y] = projectToMap(createCamera(size), size, 200, 450);
    const [sx, sy] = projectToScreen(zoomedCamera, size, x, y);
    expect(sx).toBeCloseTo(200);
    expect(sy).toBeCloseTo(450);
  });

  it("goes neither out of the map nor too near or far", () => {
    expect(panCamera(createCamera(size), 1e9, -1e9)).toMatchObject({ x: 0, y: SIDE });
    expect(computeZoom(zoomCamera(createCamera(size), size, 1e9), size)).toBeCloseTo(400);
    expect(computeZoom(zoomCamera(createCamera(size), size, 1e-9), size)).toBeCloseTo(0.5);
  });
});

describe("names", () => {
  const words = Array.from({ length: 300 }, (_, i) => ({ label: `name ${i}`, x: (i * 7919) % SIDE, y: (i * 104729) % SIDE, weight: 300 - i }));
  const measure = (text: string, size: number): number => (text.length * size) / 2;

  it("are not over each other, and the largest is always there", () => {
    for (const zoom of [0.5, 1, 4, 40]) {
      const placedLabels = placeLabels(words, 0.01 * zoom, zoom, measure);
      expect(placedLabels[0]!.mapLabel.label).toBe("name 0");
      expect(placedLabels.length).toBeLessThanOrEqual(computeLabelLimit(zoom));
      const overlaps = placedLabels.filter((a, i) =>
        placedLabels.slice(i + 1).some((b) => 2 * Math.abs(a.x - b.x) < a.width + b.width && 2 * Math.abs(a.y - b.y) < a.height + b.height),
      );
      expect(overlaps).toEqual([]);
    }
  });

  it("are cut where they would lie across the map", () => {
    const [label] = placeLabels([{ label: "🙂".repeat(200), x: 0, y: 0, weight: 1 }], 1, 1, measure);
    expect(label!.text).toBe(`${"🙂".repeat(29)}…`);
    expect(label!.width).toBeLessThan(600);
  });

  it("are more as one comes nearer", () => {
    const counts = [1, 2, 4, 16].map((zoom) => placeLabels(words, 0.01 * zoom, zoom, measure).length);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    expect(counts[3]).toBeGreaterThan(2 * counts[0]!);
  });
});

describe("drawing by hand", () => {
  it("stamps discs, crosses that leave their sides out, and rims", () => {
    const [disc, cross, ring] = [createStamp(9, "disc"), createStamp(9, "cross"), createStamp(9, "ring")];
    expect(disc.dx.length).toBe(ring.dx.length);
    expect(cross.dx.length).toBeLessThan(disc.dx.length);
    expect([...disc.rim].some(Boolean)).toBe(false);
    expect([...ring.rim].some(Boolean) && ![...ring.rim].every(Boolean)).toBe(true);
    expect(createStamp(0.2, "disc").dx.length).toBe(1);
  });

  it("reads colours as sheets have them", () => {
    expect(parseColour(" #12693f")).toEqual([18, 105, 63]);
    expect(parseColour("#fff")).toEqual([255, 255, 255]);
    expect(mixColours([0, 0, 0], [255, 100, 1], 0.5)).toEqual([128, 50, 1]);
  });
});
