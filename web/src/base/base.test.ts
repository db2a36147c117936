import { describe, expect, it } from "vitest";
import { query } from "../api/client";
import { between, boxOf, nudged, regionOf } from "../item/box";
import { provenance, tagRows } from "../item/tags";
import type { ItemDetails } from "../api/types";
import { lastTerm, written } from "../search/terms";
import { withJob } from "../status/order";
import type { JobStatus } from "../api/types";
import { ago, bytes, count, nameOf, percent } from "./format";
import { changed } from "./router";

describe("addresses", () => {
  it("change in one value and keep the others", () => {
    expect(changed("?a=1&b=2", { b: null, c: "x y" })).toBe("?a=1&c=x+y");
    expect(changed("?a=1", { a: false })).toBe("");
    expect(changed("", { untagged: true, n: 0 })).toBe("?untagged=1&n=0");
  });
  it("ask for nothing that is empty", () => {
    expect(query({ a: null, b: "", c: 0, d: false, e: "10%" })).toBe("?c=0&d=false&e=10%25");
  });
});

describe("what people read", () => {
  it("never says 100 % of what is only near", () => {
    expect([percent(0.999), percent(1), percent(0.001), percent(0), percent(0.5)]).toEqual([
      "99 %",
      "100 %",
      "< 1 %",
      "0 %",
      "50 %",
    ]);
  });
  it("counts, sizes, names, times", () => {
    expect([count(1, "picture"), count(1200, "picture")]).toEqual(["1 picture", "1,200 pictures"]);
    expect([bytes(999), bytes(1200), bytes(2_345_678)]).toEqual(["999 B", "1.2 kB", "2.3 MB"]);
    expect([nameOf("a/b.jpg"), nameOf("b.jpg")]).toEqual(["b.jpg", "b.jpg"]);
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect([ago("2026-01-01T00:00:00", now), ago("2026-01-01T23:59:50Z", now)]).toEqual(["yesterday", "just now"]);
  });
});

describe("boxes", () => {
  it("are the same from any corner, and stay in the picture", () => {
    expect(between({ x: 60, y: 70 }, { x: -5, y: 20 })).toEqual({ x: 0, y: 20, w: 60, h: 50 });
    expect(between({ x: 10, y: 10 }, { x: 11, y: 90 })).toBeNull();
  });
  it("are read as they are written", () => {
    const box = { x: 10.5, y: 0, w: 20, h: 100 };
    expect(regionOf(box)).toBe("10.5%,0%,20%,100%");
    expect(boxOf(regionOf(box))).toEqual(box);
    expect(boxOf("1,2,3,4")).toBeNull();
  });
  it("move and grow by keys, but not out of the picture", () => {
    expect(nudged({ x: 50, y: 0, w: 50, h: 50 }, "ArrowRight", false)).toEqual({ x: 50, y: 0, w: 50, h: 50 });
    expect(nudged({ x: 0, y: 0, w: 50, h: 50 }, "ArrowDown", true)).toEqual({ x: 0, y: 0, w: 50, h: 52 });
  });
});

describe("searches", () => {
  it("complete the term at the end", () => {
    expect(lastTerm("har").sought).toBe("har");
    expect(lastTerm("boat -per").put("person")).toBe("boat -person ");
    expect(lastTerm('boat "old t').sought).toBe("old t");
    expect(lastTerm('boat "old t').put("old town")).toBe('boat "old town" ');
    expect(lastTerm("boat ").put("dog")).toBe("boat dog ");
    expect(lastTerm("boat ").sought).toBe("");
  });
  it("hold labels of several words in quotes", () => {
    expect([written("dog"), written("old town"), written("-x")]).toEqual(["dog", '"old town"', '"-x"']);
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
    expect(tagRows(item, overlay).map((r) => [r.label, r.verdict])).toEqual([
      ["boat", "accepted"],
      ["dog", "rejected"],
      ["cat", "accepted"],
    ]);
  });
  it("say where they came from", () => {
    const rows = tagRows(item, new Map());
    expect(rows.map(provenance)).toEqual(["by ann", "suggested by the model"]);
  });
});

describe("jobs", () => {
  it("are replaced by what is newly known of them", () => {
    const job = (id: number, state: string): JobStatus => ({ id, state }) as JobStatus;
    const list = withJob(withJob([job(1, "done")], job(2, "waiting")), job(2, "running"));
    expect(list.map((j) => [j.id, j.state])).toEqual([
      [2, "running"],
      [1, "done"],
    ]);
  });
});
