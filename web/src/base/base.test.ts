import { describe, expect, it } from "vitest";
import { buildQuery } from "../api/client";
import { buildBox, parseRegion, moveBox, formatRegion } from "../item/region-box";
import { describeProvenance, buildTagRows } from "../item/tag-rows";
import type { ItemDetails } from "../api/types";
import { parseLastTerm, quoteLabel } from "../search/query-text";
import { upsertJob } from "../status/job-list";
import type { Job } from "../api/types";
import { formatAge, formatBytes, formatCount, getFileName, formatPercent } from "./format";
import { applyChanges } from "./router";

describe("addresses", () => {
  it("change in one value and keep the others", () => {
    expect(applyChanges("?a=1&b=2", { b: null, c: "x y" })).toBe("?a=1&c=x+y");
    expect(applyChanges("?a=1", { a: false })).toBe("");
    expect(applyChanges("", { untagged: true, n: 0 })).toBe("?untagged=1&n=0");
  });
  it("ask for nothing that is empty", () => {
    expect(buildQuery({ a: null, b: "", c: 0, d: false, e: "10%" })).toBe("?c=0&d=false&e=10%25");
  });
});

describe("what people read", () => {
  it("never says 100 % of what is only near", () => {
    expect([formatPercent(0.999), formatPercent(1), formatPercent(0.001), formatPercent(0), formatPercent(0.5)]).toEqual([
      "99 %",
      "100 %",
      "< 1 %",
      "0 %",
      "50 %",
    ]);
  });
  it("counts, sizes, names, times", () => {
    expect([formatCount(1, "picture"), formatCount(1200, "picture")]).toEqual(["1 picture", "1,200 pictures"]);
    expect([formatBytes(999), formatBytes(1200), formatBytes(2_345_678)]).toEqual(["999 B", "1.2 kB", "2.3 MB"]);
    expect([getFileName("a/b.jpg"), getFileName("b.jpg")]).toEqual(["b.jpg", "b.jpg"]);
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect([formatAge("2026-01-01T00:00:00", now), formatAge("2026-01-01T23:59:50Z", now)]).toEqual(["yesterday", "just now"]);
  });
});

describe("boxes", () => {
  it("are the same from any corner, and stay in the picture", () => {
    expect(buildBox({ x: 60, y: 70 }, { x: -5, y: 20 })).toEqual({ x: 0, y: 20, w: 60, h: 50 });
    expect(buildBox({ x: 10, y: 10 }, { x: 11, y: 90 })).toBeNull();
  });
  it("are read as they are written", () => {
    const box = { x: 10.5, y: 0, w: 20, h: 100 };
    expect(formatRegion(box)).toBe("10.5%,0%,20%,100%");
    expect(parseRegion(formatRegion(box))).toEqual(box);
    expect(parseRegion("1,2,3,4")).toBeNull();
  });
  it("move and grow by keys, but not out of the picture", () => {
    expect(moveBox({ x: 50, y: 0, w: 50, h: 50 }, "ArrowRight", false)).toEqual({ x: 50, y: 0, w: 50, h: 50 });
    expect(moveBox({ x: 0, y: 0, w: 50, h: 50 }, "ArrowDown", true)).toEqual({ x: 0, y: 0, w: 50, h: 52 });
  });
});

describe("searches", () => {
  it("complete the term at the end", () => {
    expect(parseLastTerm("har").text).toBe("har");
    expect(parseLastTerm("boat -per").complete("person")).toBe("boat -person ");
    expect(parseLastTerm('boat "old t').text).toBe("old t");
    expect(parseLastTerm('boat "old t').complete("old town")).toBe('boat "old town" ');
    expect(parseLastTerm("boat ").complete("dog")).toBe("boat dog ");
    expect(parseLastTerm("boat ").text).toBe("");
  });
  it("hold labels of several words in quotes", () => {
    expect([quoteLabel("dog"), quoteLabel("old town"), quoteLabel("-x")]).toEqual(["dog", '"old town"', '"-x"']);
  });
});

describe("labels of an item", () => {
  const annotation = { label_id: 1, at: "", by: "ann", score: null, probability: null, region: "", model: null };
  const item = {
    id: 1,
    annotations: [
      { ...annotation, label: "boat", state: "accepted", origin: "person" },
      { ...annotation, label: "mast", state: "accepted", origin: "person", region: "1,2,3,4" },
    ],
    suggestions: [{ label: "dog", score: 1, probability: 0.7 }],
  } as unknown as ItemDetails;

  it("are what the service said and, over it, what was just decided", () => {
    const overlay = new Map([
      ["1 dog", "rejected"],
      ["1 cat", "accepted"],
      ["1 gone", null],
      ["12 boat", "rejected"],
    ] as const);
    expect(buildTagRows(item, overlay).map((r) => [r.label, r.state])).toEqual([
      ["boat", "accepted"],
      ["dog", "rejected"],
      ["cat", "accepted"],
    ]);
  });
  it("say where they came from", () => {
    const rows = buildTagRows(item, new Map());
    expect(rows.map((row) => describeProvenance(row, false))).toEqual(["by ann", "suggested by the model"]);
    expect(rows.map((row) => describeProvenance(row, true))).toEqual(["by ann", "guess from the name"]);
  });
});

describe("jobs", () => {
  it("are replaced by what is newly known of them", () => {
    const job = (id: number, state: string): Job => ({ id, state }) as Job;
    const list = upsertJob(upsertJob([job(1, "done")], job(2, "waiting")), job(2, "running"));
    expect(list.map((j) => [j.id, j.state])).toEqual([
      [2, "running"],
      [1, "done"],
    ]);
  });
});
