import { describe, expect, it, vi } from "vitest";
import { itemQuery } from "./filters";
import { Haste } from "./haste";
import { clicked, everything, moved, NOTHING, target, toggled } from "./selection";

describe("selection", () => {
  const idAt = (at: number): number | undefined => (at < 100 ? at + 1000 : undefined);
  const chosen = (s: { chosen: ReadonlySet<number> }): number[] => [...s.chosen].sort();

  it("is as desktops do it", () => {
    let s = clicked(NOTHING, 3, idAt, { range: false, more: false });
    expect(chosen(s)).toEqual([1003]);
    s = clicked(s, 5, idAt, { range: true, more: false });
    expect(chosen(s)).toEqual([1003, 1004, 1005]);
    s = clicked(s, 4, idAt, { range: false, more: true });
    expect(chosen(s)).toEqual([1003, 1005]);
    s = clicked(s, 6, idAt, { range: true, more: true });
    expect(chosen(s)).toEqual([1003, 1004, 1005, 1006]);
  });

  it("follows the keys", () => {
    let s = moved(NOTHING, 2, idAt, false);
    expect([chosen(s), s.focus]).toEqual([[], 2]);
    s = moved(s, 4, idAt, true);
    s = moved(s, 3, idAt, true);
    expect(chosen(s)).toEqual([1002, 1003]);
    expect(chosen(toggled(s, 3, idAt))).toEqual([1002]);
    expect(everything(s, 100, idAt).chosen.size).toBe(100);
  });

  it("stays in the grid", () => {
    expect(target("ArrowDown", 0, 4, 10, 2)).toBe(4);
    expect(target("ArrowDown", 8, 4, 10, 2)).toBe(8);
    expect(target("ArrowLeft", 0, 4, 10, 2)).toBe(0);
    expect(target("PageDown", 4, 4, 10, 2)).toBe(9);
    expect(target("End", 0, 4, 10, 2)).toBe(9);
    expect(target("q", 0, 4, 10, 2)).toBeNull();
    expect(target("End", 0, 4, 0, 2)).toBeNull();
  });
});

describe("filters in the address", () => {
  const of = (text: string): unknown => itemQuery(new URLSearchParams(text));

  it("become what the service is asked", () => {
    expect(of("")).toEqual({ sort: "path", state: "present" });
    expect(of("label=boat&state=suggested&min=80&sort=probability")).toEqual({
      sort: "probability",
      descending: true,
      label: "boat",
      label_state: "suggested",
      min_probability: 0.8,
      state: "present",
    });
    expect(of("unfit=90")).toEqual({ sort: "path", state: "present", no_tag_fits: 0.9 });
    for (const wrong of ["0", "-5", "101", "x", ""]) expect(of(`unfit=${wrong}`)).toEqual(of(""));
    expect(of("sort=taken_at&order=other")).toEqual({ sort: "taken_at", state: "present" });
  });

  it("are left out where they make no sense", () => {
    expect(of("min=abc&max=400&state=suggested&label=b&sort=nothing&presence=x")).toEqual({
      sort: "path",
      state: "present",
      label: "b",
      label_state: "suggested",
    });
    expect(of("min=50&label=b")).toEqual({ sort: "path", state: "present", label: "b" });
    expect(of("sort=probability")).toEqual({ sort: "best_probability", descending: true, state: "present" });
  });
});

describe("haste", () => {
  it("is told when a list is scrolled fast, and when it rests", () => {
    vi.useFakeTimers();
    const told: boolean[] = [];
    const haste = new Haste((fast) => told.push(fast));
    haste.scrolled(0, 0);
    haste.scrolled(20, 16); // a slow wheel
    expect(told).toEqual([]);
    haste.scrolled(1020, 32);
    haste.scrolled(2020, 48);
    expect(told).toEqual([true]);
    haste.scrolled(2030, 64); // it slows down
    expect(told).toEqual([true, false]);
    haste.scrolled(500, 80); // back, as fast
    vi.advanceTimersByTime(500);
    expect([told, haste.fast]).toEqual([[true, false, true, false], false]);
    haste.scrolled(9000, 90); // where it rested is forgotten: one step is no haste
    expect(haste.fast).toBe(false);
    vi.useRealTimers();
  });
});
