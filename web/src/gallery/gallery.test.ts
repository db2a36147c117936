import { describe, expect, it } from "vitest";
import { itemQuery } from "./filters";
import { type Page, Pages } from "./pages";
import { clicked, everything, moved, NOTHING, target, toggled } from "./selection";

function numbers(total: number, asked: string[] = []): Pages<number> {
  return new Pages<number>(
    async (cursor, k): Promise<Page<number>> => {
      asked.push(`${cursor ?? "start"} ${k}`);
      const start = Number(cursor ?? 0);
      const items = Array.from({ length: Math.min(k, total - start) }, (_, i) => start + i);
      return { items, next: start + k < total ? String(start + k) : null, total: cursor === null ? total : null };
    },
    10,
    50,
  );
}
const rest = (): Promise<void> => new Promise((done) => setTimeout(done, 5));

describe("a list in pages", () => {
  it("asks for what is looked at and a little more, and keeps the count", async () => {
    const asked: string[] = [];
    const pages = numbers(95, asked);
    pages.need(0);
    await rest();
    expect(pages.items).toHaveLength(10);
    expect(pages.length).toBe(95);
    pages.need(6);
    await rest();
    expect(asked).toEqual(["start 10", "10 10"]);
  });

  it("walks in long steps to a place far away, and ends at the end", async () => {
    const asked: string[] = [];
    const pages = numbers(95, asked);
    pages.need(94);
    await rest();
    expect(asked).toEqual(["start 50", "50 50"]);
    expect(pages.items).toEqual(Array.from({ length: 95 }, (_, i) => i));
    expect(pages.get().ended).toBe(true);
    pages.need(500);
    await rest();
    expect(asked).toHaveLength(2);
  });

  it("stops at an error and goes on when asked again", async () => {
    let broken = true;
    const pages = new Pages<number>(async () => {
      if (broken) throw new Error("away");
      return { items: [1, 2], next: null, total: 2 };
    });
    pages.need(0);
    await rest();
    expect(pages.get().error?.message).toBe("away");
    broken = false;
    pages.retry();
    await rest();
    expect(pages.items).toEqual([1, 2]);
  });
});

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
    expect(of("sort=taken&order=other")).toEqual({ sort: "taken", state: "present" });
  });

  it("are left out where they make no sense", () => {
    expect(of("min=abc&max=400&state=suggested&label=b&sort=nothing&presence=x")).toEqual({
      sort: "path",
      state: "present",
      label: "b",
      label_state: "suggested",
    });
    expect(of("min=50&label=b")).toEqual({ sort: "path", state: "present", label: "b" });
    expect(of("sort=probability")).toEqual({ sort: "best", descending: true, state: "present" });
  });
});
