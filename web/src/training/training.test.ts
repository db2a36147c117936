import { describe, expect, it } from "vitest";
import type { ComparedModel, Job, ModelList } from "../api/types";
import { formatTick, parseModelIds, findComparisonJob, computeTicks, describeMissing, formatSigned, describeVerdict } from "./messages";

const compared = (verdict: ComparedModel["verdict"], mean: number, low: number, high: number): ComparedModel => ({
  model: 2, labels: 3, features: "colour", figures: {}, difference: { MAP: { mean, low, high, ahead: low > 0 ? 1 : 0 } }, verdict, gained: [], lost: [],
});

describe("what a comparison says", () => {
  it("with its interval and how much it is judged by", () => {
    expect(describeVerdict(compared("worse", -0.0312, -0.05, -0.012), 1, 120)).toBe(
      "Model 2 does worse than model 1: its MAP differs by −0.031 (−0.050 to −0.012 with 95 % confidence) on 120 held-out pictures.",
    );
    expect(describeVerdict(compared("alike", 0.004, -0.01, 0.02), 1, 1)).toMatch(/^It cannot be said which is better: .* on 1 held-out picture, which may be chance\.$/);
    expect(describeVerdict({ ...compared(null, 0, 0, 0), difference: null }, 1, 9)).toBe("");
    expect([formatSigned(0), formatSigned(-0.0004)]).toEqual(["+0.000", "−0.000"]);
  });
});

describe("the models of an address", () => {
  it("are two different numbers, whatever stands there", () => {
    expect(parseModelIds("1,2")).toEqual([1, 2]);
    expect([parseModelIds(null), parseModelIds(""), parseModelIds("x,-1,1.5"), parseModelIds("3,3"), parseModelIds("1,2,3")]).toEqual([[], [], [], [3], [1, 2]]);
  });
  it("are told where they are not there", () => {
    const models = { models: [{ id: 1, is_available: true }, { id: 3, is_available: false }], removed: [2] } as unknown as ModelList;
    expect([describeMissing([], models), describeMissing([1], models)]).toEqual([null, null]);
    expect(describeMissing([1, 9], models)).toBe("There is no model 9 here.");
    expect(describeMissing([2, 8], models)).toBe("There is no model 8 here. Model 2 was removed.");
    expect(describeMissing([1, 3], models)).toBe("The files of model 3 are gone.");
  });
  it("find the latest job that compared them", () => {
    const job = (id: number, kind: Job["kind"], models?: unknown): Job => ({
      id, kind, state: "done", by: "eve", options: { models }, progress: {}, result: null, error: null, requested_at: "", started_at: null, ended_at: null,
    });
    const jobs = [job(5, "train"), job(4, "compare", [2, 1]), job(3, "compare", [1, 2]), job(2, "compare", [1, 2])];
    expect(findComparisonJob(jobs, [1, 2])?.id).toBe(3);
    expect(findComparisonJob(jobs, [1, 3])).toBe(null);
  });
});

describe("marks of an axis", () => {
  it("are round and hold all values", () => {
    expect(computeTicks(0.21, 0.57)).toEqual([0.2, 0.4, 0.6]);
    expect(computeTicks(0, 100)).toEqual([0, 50, 100]);
    const ticks = computeTicks(0.701, 0.733);
    expect(ticks.map((tick) => formatTick(tick, ticks))).toEqual(["0.70", "0.72", "0.74"]);
    expect([0, 50_000].map((tick) => formatTick(tick, [0, 50_000]))).toEqual(["0e+0", "5e+4"]);
    for (const [low, high] of [[0.5, 0.5], [0, 0], [1e-9, 2e-9], [3, 123_456], [-1, 1]] as const) {
      const ticks = computeTicks(low, high);
      expect(ticks.length).toBeGreaterThan(1);
      expect(ticks.length).toBeLessThan(7);
      expect(ticks[0]).toBeLessThanOrEqual(low);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(high);
    }
  });
});
