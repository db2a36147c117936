import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import type { MapStatus } from "../api/types";
import { askMap } from "./asking";
import { moved, toMap, toScreen, whole, zoomed, zoomOf } from "./camera";
import { between, parsed } from "./colours";
import { stamp } from "./hand-painter";
import { inside, Nearby } from "./nearby";
import { marked, probability, readCodes, readPoints, SIDE } from "./points";
import { most, placed } from "./words";

/** As the service writes them. */
function written(steps: number[], values: Uint8Array): ArrayBuffer {
  const head = new Uint8Array(Uint32Array.from([steps.length, ...steps]).buffer);
  const whole_ = new Uint8Array(head.length + values.length);
  whole_.set(head);
  whole_.set(values, head.length);
  return whole_.buffer;
}
const bytes = (numbers: number[]): Uint8Array => new Uint8Array(Uint16Array.from(numbers).buffer);

describe("a map that changes while it is asked for", () => {
  const gone = new ApiError(409, "the map has changed");
  const from = (failures: number) => {
    const asked: string[] = [];
    let turn = 0;
    const map = async () => ({ version: `v${(turn += 1)}` }) as MapStatus;
    const mapPoints = async (_: string, version: string) => {
      asked.push(version);
      if (asked.length <= failures) throw gone;
      return written([turn], bytes([0, 0]));
    };
    return { asked, map, mapPoints };
  };

  it("is asked for again, so that facts and points are of one version", async () => {
    const service = from(1);
    const { about, points } = await askMap("pca", new AbortController().signal, service);
    expect([about.version, [...points.ids], service.asked]).toEqual(["v2", [2], ["v1", "v2"]]);
  });

  it("is not asked for without end", async () => {
    const service = from(9);
    await expect(askMap("pca", new AbortController().signal, service)).rejects.toBe(gone);
    expect(service.asked).toHaveLength(3);
  });
});

describe("points", () => {
  const points = readPoints(written([3, 1, 5], bytes([0, 0, 10, 20, SIDE, SIDE])));

  it("are numbers by steps, and places from the upper left", () => {
    expect([...points.ids]).toEqual([3, 4, 9]);
    expect([...points.xy]).toEqual([0, SIDE, 10, SIDE - 20, SIDE, 0]);
    expect([...marked(points, new Set([9, 3, 7]))]).toEqual([1, 0, 1]);
  });

  it("have codes by their numbers; other items are left out", () => {
    expect([...readCodes(written([1, 3, 5, 2], Uint8Array.from([7, 2, 255, 1])), points)]).toEqual([0, 2, 255]);
    expect([probability(2), probability(3), probability(255)]).toEqual([null, 0, 1]);
  });

  it("that are cut off are no map", () => {
    expect(() => readPoints(written([1, 1], bytes([0, 0])))).toThrow("in pieces");
    expect(() => readPoints(new ArrayBuffer(2))).toThrow("in pieces");
  });
});

describe("nearby", () => {
  // The slow way, on points of a fixed sequence.
  let seed = 1;
  const draw = (): number => (seed = (seed * 48271) % 2147483647) % (SIDE + 1);
  const xy = Uint16Array.from({ length: 4000 }, draw);
  const nearby = new Nearby(xy);

  it("finds what a look at all points finds", () => {
    for (let i = 0; i < 200; i += 1) {
      const [x, y, reach] = [draw(), draw(), 2500];
      let [best, distance] = [-1, reach * reach];
      for (let k = 0; k < xy.length / 2; k += 1) {
        const d = (xy[2 * k]! - x) ** 2 + (xy[2 * k + 1]! - y) ** 2;
        if (d < distance) [best, distance] = [k, d];
      }
      expect(nearby.nearest(x, y, reach)).toBe(best);
    }
    expect(nearby.nearest(-1e9, 5, 100)).toBe(-1);
  });

  it("selects what lies within an outline, also a hollow one", () => {
    const outline = [[5000, 5000], [60000, 9000], [30000, 25000], [50000, 60000], [8000, 50000]] as const;
    const all = Array.from({ length: xy.length / 2 }, (_, i) => i);
    const within = nearby.within(outline);
    expect(within).toEqual(all.filter((i) => inside(outline, xy[2 * i]!, xy[2 * i + 1]!)));
    expect(within.length).toBeGreaterThan(100);
    expect(inside(outline, 45000, 30000)).toBe(false); // in the notch
    expect(nearby.within([[0, 0], [9, 9]])).toEqual([]);
    expect(nearby.inBox(0, 0, SIDE, SIDE)).toEqual(all);
  });
});

describe("camera", () => {
  const size = { width: 800, height: 600 };

  it("keeps the place under the mouse while it zooms", () => {
    const near = zoomed(whole(size), size, 3, 200, 450);
    expect(zoomOf(near, size)).toBeCloseTo(3);
    const [x, y] = toMap(whole(size), size, 200, 450);
    const [sx, sy] = toScreen(near, size, x, y);
    expect(sx).toBeCloseTo(200);
    expect(sy).toBeCloseTo(450);
  });

  it("goes neither out of the map nor too near or far", () => {
    expect(moved(whole(size), 1e9, -1e9)).toMatchObject({ x: 0, y: SIDE });
    expect(zoomOf(zoomed(whole(size), size, 1e9), size)).toBeCloseTo(400);
    expect(zoomOf(zoomed(whole(size), size, 1e-9), size)).toBeCloseTo(0.5);
  });
});

describe("names", () => {
  const words = Array.from({ length: 300 }, (_, i) => ({ label: `name ${i}`, x: (i * 7919) % SIDE, y: (i * 104729) % SIDE, weight: 300 - i }));
  const measure = (text: string, size: number): number => (text.length * size) / 2;

  it("are not over each other, and the largest is always there", () => {
    for (const zoom of [0.5, 1, 4, 40]) {
      const found = placed(words, 0.01 * zoom, zoom, measure);
      expect(found[0]!.word.label).toBe("name 0");
      expect(found.length).toBeLessThanOrEqual(most(zoom));
      const over = found.filter((a, i) =>
        found.slice(i + 1).some((b) => 2 * Math.abs(a.x - b.x) < a.width + b.width && 2 * Math.abs(a.y - b.y) < a.height + b.height),
      );
      expect(over).toEqual([]);
    }
  });

  it("are cut where they would lie across the map", () => {
    const [one] = placed([{ label: "🙂".repeat(200), x: 0, y: 0, weight: 1 }], 1, 1, measure);
    expect(one!.text).toBe(`${"🙂".repeat(29)}…`);
    expect(one!.width).toBeLessThan(600);
  });

  it("are more as one comes nearer", () => {
    const counts = [1, 2, 4, 16].map((zoom) => placed(words, 0.01 * zoom, zoom, measure).length);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    expect(counts[3]).toBeGreaterThan(2 * counts[0]!);
  });
});

describe("drawing by hand", () => {
  it("stamps discs, crosses that leave their sides out, and rims", () => {
    const [disc, cross, ring] = [stamp(9, "disc"), stamp(9, "cross"), stamp(9, "ring")];
    expect(disc.dx.length).toBe(ring.dx.length);
    expect(cross.dx.length).toBeLessThan(disc.dx.length);
    expect([...disc.rim].some(Boolean)).toBe(false);
    expect([...ring.rim].some(Boolean) && ![...ring.rim].every(Boolean)).toBe(true);
    expect(stamp(0.2, "disc").dx.length).toBe(1);
  });

  it("reads colours as sheets have them", () => {
    expect(parsed(" #12693f")).toEqual([18, 105, 63]);
    expect(parsed("#fff")).toEqual([255, 255, 255]);
    expect(between([0, 0, 0], [255, 100, 1], 0.5)).toEqual([128, 50, 1]);
  });
});
