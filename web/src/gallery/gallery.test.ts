import { describe, expect, it, vi } from "vitest";
import { buildItemQuery } from "./filters";
import { findTarget } from "./grid-keys";
import { ScrollSpeed } from "./scroll-speed";
import { selectByClick, selectAll, moveFocus, EMPTY_SELECTION, toggleItem } from "./selection";

describe("selection", () => {
  const idAt = (position: number): number | undefined => (position < 100 ? position + 1000 : undefined);
  const listIds = (s: { ids: ReadonlySet<number> }): number[] => [...s.ids].sort();

  it("is as desktops do it", () => {
    let s = selectByClick(EMPTY_SELECTION, 3, idAt, { range: false, additive: false });
    expect(listIds(s)).toEqual([1003]);
    s = selectByClick(s, 5, idAt, { range: true, additive: false });
    expect(listIds(s)).toEqual([1003, 1004, 1005]);
    s = selectByClick(s, 4, idAt, { range: false, additive: true });
    expect(listIds(s)).toEqual([1003, 1005]);
    s = selectByClick(s, 6, idAt, { range: true, additive: true });
    expect(listIds(s)).toEqual([1003, 1004, 1005, 1006]);
  });

  it("follows the keys", () => {
    let s = moveFocus(EMPTY_SELECTION, 2, idAt, false);
    expect([listIds(s), s.focus]).toEqual([[], 2]);
    s = moveFocus(s, 4, idAt, true);
    s = moveFocus(s, 3, idAt, true);
    expect(listIds(s)).toEqual([1002, 1003]);
    expect(listIds(toggleItem(s, 3, idAt))).toEqual([1002]);
    expect(selectAll(s, 100, idAt).ids.size).toBe(100);
  });

  it("stays in the grid", () => {
    expect(findTarget("ArrowDown", 0, 4, 10, 2)).toBe(4);
    expect(findTarget("ArrowDown", 8, 4, 10, 2)).toBe(8);
    expect(findTarget("ArrowLeft", 0, 4, 10, 2)).toBe(0);
    expect(findTarget("PageDown", 4, 4, 10, 2)).toBe(9);
    expect(findTarget("End", 0, 4, 10, 2)).toBe(9);
    expect(findTarget("q", 0, 4, 10, 2)).toBeNull();
    expect(findTarget("End", 0, 4, 0, 2)).toBeNull();
  });
});

describe("filters in the address", () => {
  const buildQuery = (text: string): unknown => buildItemQuery(new URLSearchParams(text));

  it("become what the service is asked", () => {
    expect(buildQuery("")).toEqual({ sort: "path", state: "present" });
    expect(buildQuery("label=boat&state=suggested&min=80&sort=probability")).toEqual({
      sort: "probability",
      descending: true,
      label: "boat",
      label_state: "suggested",
      min_probability: 0.8,
      state: "present",
    });
    expect(buildQuery("unfit=90")).toEqual({ sort: "path", state: "present", no_tag_fits: 0.9 });
    for (const invalidPercent of ["0", "-5", "101", "x", ""]) expect(buildQuery(`unfit=${invalidPercent}`)).toEqual(buildQuery(""));
    expect(buildQuery("sort=taken_at&order=other")).toEqual({ sort: "taken_at", state: "present" });
  });

  it("are left out where they make no sense", () => {
    expect(buildQuery("min=abc&max=400&state=suggested&label=b&sort=nothing&presence=x")).toEqual({
      sort: "path",
      state: "present",
      label: "b",
      label_state: "suggested",
    });
    expect(buildQuery("min=50&label=b")).toEqual({ sort: "path", state: "present", label: "b" });
    expect(buildQuery("sort=probability")).toEqual({ sort: "best_probability", descending: true, state: "present" });
  });
});

describe("haste", () => {
  it("is changes when a list is scrolled fast, and when it rests", () => {
    vi.useFakeTimers();
    const changes: boolean[] = [];
    const haste = new ScrollSpeed((fast) => changes.push(fast));
    haste.record(0, 0);
    haste.record(20, 16); // a slow wheel
    expect(changes).toEqual([]);
    haste.record(1020, 32);
    haste.record(2020, 48);
    expect(changes).toEqual([true]);
    haste.record(2030, 64); // it slows down
    expect(changes).toEqual([true, false]);
    haste.record(500, 80); // back, as fast
    vi.advanceTimersByTime(500);
    expect([changes, haste.isFast]).toEqual([[true, false, true, false], false]);
    haste.record(9000, 90); // the position before the rest does not count
    expect(haste.isFast).toBe(false);
    vi.useRealTimers();
  });
});
