import { describe, expect, it } from "vitest";
import type { Job } from "../api/types";
import { describeIndex, listJobNotes, describeThresholds } from "./messages";

describe("what a scan has to say", () => {
  const scan = (result: unknown): Job => ({ kind: "scan", state: "done", result }) as Job;

  it("is which folders it left alone, and where tags come from", () => {
    const unreachableRoots = [{ folder: "/disk", reason: "it cannot be reached", items: 3 }];
    expect(listJobNotes(scan({ unreachable_roots: unreachableRoots, notes: ["tags come from sidecars"], held_tags: 0 }))).toEqual([
      "/disk is left as it was (3 items): it cannot be reached",
      "tags come from sidecars",
    ]);
    expect(listJobNotes(scan({ unreachable_roots: [], notes: [], held_tags: 0 }))).toEqual([]);
  });
  it("is how many tags stay that files do not say any more", () => {
    const listNotes = (n: number): string[] => listJobNotes(scan({ unreachable_roots: [], notes: [], held_tags: n }));
    expect(listNotes(0)).toEqual([]);
    expect(listNotes(2)).toEqual(["2 tags kept that files no longer have; clear those that are wrong"]);
  });
  it("is nothing before it is done, and nothing of other work", () => {
    expect(listJobNotes(scan(null))).toEqual([]);
    expect(listJobNotes({ kind: "train", result: { model: 3 } } as unknown as Job)).toEqual([]);
  });
});

describe("what an index has to say", () => {
  const result = { "recall@10": 0.968, milliseconds: 0.234, exact_milliseconds: 12.4 };
  it("is how many of the nearest it finds, and how soon", () => {
    const notes = listJobNotes({ kind: "index", state: "done", result: { dot: result, cosine: result } } as unknown as Job);
    expect(notes).toEqual([
      "Pictures of a label: 97 % of the ten nearest are found, in 0.2 ms instead of 12",
      "Similar pictures: 97 % of the ten nearest are found, in 0.2 ms instead of 12",
    ]);
    expect(listJobNotes({ kind: "index", state: "running", result: null } as unknown as Job)).toEqual([]);
  });
  it("is nothing where none would help", () => {
    const emptyResult = { recall: null, milliseconds: null, exact_milliseconds: null };
    expect([describeIndex({ state: "small", ...emptyResult }), describeIndex({ state: "not installed", ...emptyResult })]).toEqual([null, null]);
    expect(describeIndex({ state: "none", ...emptyResult })).toMatch(/very large collection/);
    expect(describeIndex({ state: "ready", recall: 1, milliseconds: 1, exact_milliseconds: 2 })).toBe(
      "It finds at least 100 % of the ten nearest pictures, in 1.0 ms or less",
    );
  });
});

describe("from which probability on suggestions are right", () => {
  it("is a sentence, also where none is", () => {
    expect(describeThresholds([0.8, 0.9, 0.95].map((precision) => ({ precision, probability: precision < 0.95 ? precision - 0.6 : null })))).toBe(
      "80 % of the suggestions with a probability of 20 % or more are right; 90 % from 30 % on. More tags are needed before 95 % of suggestions are right.",
    );
    expect(describeThresholds([])).toBe("");
  });
});
