import { describe, expect, it } from "vitest";
import { type Page, Pages } from "./pages";

function numbers(total: number, asked: string[] = []): Pages<number> {
  return new Pages<number>(
    async (cursor, k): Promise<Page<number>> => {
      asked.push(`${cursor ?? "start"} ${k}`);
      const start = Number(cursor ?? 0);
      const items = Array.from({ length: Math.min(k, total - start) }, (_, i) => start + i);
      return { items, next_cursor: start + k < total ? String(start + k) : null, total: cursor === null ? total : null };
    },
    { near: 10, far: 50 },
  );
}
const rest = (): Promise<void> => new Promise((done) => setTimeout(done, 5));

describe("a list that is walked from page to page", () => {
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
      return { items: [1, 2], next_cursor: null, total: 2 };
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

describe("a list whose places have cursors", () => {
  function named(names: string[]): { pages: Pages<string>; asked: (string | null)[] } {
    const asked: (string | null)[] = [];
    const pages = new Pages<string>(
      async (cursor, k) => {
        asked.push(cursor);
        return { items: names.slice(Number(cursor), Number(cursor) + k), next_cursor: null, total: names.length };
      },
      { near: 10, at: String },
    );
    return { pages, asked };
  }

  it("asks for what is looked at, once, wherever it is", async () => {
    const { pages, asked } = named(Array.from({ length: 95 }, (_, i) => `n${i}`));
    pages.need(5, 0);
    pages.need(12, 0);
    await rest();
    expect(asked).toEqual(["0", "10"]);
    expect([pages.length, pages.items[3], pages.items[30], pages.items.indexOf("n11")]).toEqual([95, "n3", undefined, 11]);
    pages.need(99, 90);
    await rest();
    expect(asked).toEqual(["0", "10", "90"]);
    expect([pages.items[94], pages.length]).toEqual(["n94", 95]);
  });

  it("keeps what is known until the new is there, be it more, less or nothing", async () => {
    const names = ["a", "b"];
    const { pages } = named(names);
    pages.need(1, 0);
    await rest();
    for (const now of [["c"], [], ["d", "e", "f"]]) {
      const before = [...pages.items];
      names.splice(0, names.length, ...now);
      pages.refresh();
      expect(pages.items).toEqual(before);
      await rest();
      expect([pages.items, pages.length]).toEqual([now, now.length]);
    }
  });

  it("takes no answer to what was asked before", async () => {
    const answers: ((page: Page<string>) => void)[] = [];
    const pages = new Pages<string>(() => new Promise((done) => answers.push(done)), { near: 10, at: String });
    pages.need(0);
    pages.refresh();
    answers[1]!({ items: ["new"], next_cursor: null, total: 1 });
    await rest();
    answers[0]!({ items: ["old"], next_cursor: null, total: 1 });
    await rest();
    expect(pages.items).toEqual(["new"]);
  });

  it("tells of trouble, and asks again when it is asked to", async () => {
    let broken = true;
    const pages = new Pages<number>(() => (broken ? Promise.reject(new Error("gone")) : Promise.resolve({ items: [1], next_cursor: null, total: 1 })), {
      at: String,
    });
    pages.need(0);
    await rest();
    expect(pages.get().error?.message).toBe("gone");
    broken = false;
    pages.refresh();
    await rest();
    expect([pages.get().error, pages.items]).toEqual([null, [1]]);
  });
});
