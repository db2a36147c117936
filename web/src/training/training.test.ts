import { describe, expect, it } from "vitest";
import type { ComparedModel, JobStatus, ModelList } from "../api/types";
import { axis, chosenIn, comparisonJob, marks, missingOf, signed, verdictOf } from "./words";

const compared = (verdict: ComparedModel["verdict"], mean: number, low: number, high: number): ComparedModel => ({
  model: 2, labels: 3, features: "colour", figures: {}, difference: { MAP: { mean, low, high } }, verdict, gained: [], lost: [],
});

describe("what a comparison says", () => {
  it("with its interval and how much it is judged by", () => {
    expect(verdictOf(compared("worse", -0.0312, -0.05, -0.012), 1, 120)).toBe(
      "Model 2 does worse than model 1: its MAP differs by −0.031 (−0.050 to −0.012 with 95 % confidence) on 120 held-out pictures.",
    );
    expect(verdictOf(compared("alike", 0.004, -0.01, 0.02), 1, 1)).toMatch(/^It cannot be said which is better: .* on 1 held-out picture, which may be chance\.$/);
    expect(verdictOf({ ...compared(null, 0, 0, 0), difference: null }, 1, 9)).toBe("");
    expect([signed(0), signed(-0.0004)]).toEqual(["+0.000", "−0.000"]);
  });
});

describe("the models of an address", () => {
  it("are two different numbers, whatever stands there", () => {
    expect(chosenIn("1,2")).toEqual([1, 2]);
    expect([chosenIn(null), chosenIn(""), chosenIn("x,-1,1.5"), chosenIn("3,3"), chosenIn("1,2,3")]).toEqual([[], [], [], [3], [1, 2]]);
  });
  it("are told where they are not there", () => {
    const models = { models: [{ id: 1, is_available: true }, { id: 3, is_available: false }], removed: [2] } as unknown as ModelList;
    expect([missingOf([], models), missingOf([1], models)]).toEqual([null, null]);
    expect(missingOf([1, 9], models)).toBe("There is no model 9 here.");
    expect(missingOf([2, 8], models)).toBe("There is no model 8 here. Model 2 was removed.");
    expect(missingOf([1, 3], models)).toBe("The files of model 3 are gone.");
  });
  it("find the latest job that compared them", () => {
    const job = (id: number, kind: JobStatus["kind"], models?: unknown): JobStatus => ({
      id, kind, state: "done", by: "eve", options: { models }, progress: {}, result: null, error: null, requested_at: "", started_at: null, ended_at: null,
    });
    const jobs = [job(5, "train"), job(4, "compare", [2, 1]), job(3, "compare", [1, 2]), job(2, "compare", [1, 2])];
    expect(comparisonJob(jobs, [1, 2])?.id).toBe(3);
    expect(comparisonJob(jobs, [1, 3])).toBe(null);
  });
});

describe("marks of an axis", () => {
  it("are round and hold all values", () => {
    expect(marks(0.21, 0.57)).toEqual([0.2, 0.4, 0.6]);
    expect(marks(0, 100)).toEqual([0, 50, 100]);
    const some = marks(0.701, 0.733);
    expect(some.map((mark) => axis(mark, some))).toEqual(["0.70", "0.72", "0.74"]);
    expect([0, 50_000].map((mark) => axis(mark, [0, 50_000]))).toEqual(["0e+0", "5e+4"]);
    for (const [low, high] of [[0.5, 0.5], [0, 0], [1e-9, 2e-9], [3, 123_456], [-1, 1]] as const) {
      const found = marks(low, high);
      expect(found.length).toBeGreaterThan(1);
      expect(found.length).toBeLessThan(7);
      expect(found[0]).toBeLessThanOrEqual(low);
      expect(found.at(-1)).toBeGreaterThanOrEqual(high);
    }
  });
});
