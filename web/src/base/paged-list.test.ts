import { describe, expect, it } from "vitest";
import { type Page, PagedList } from "./paged-list";

function numbers(total: number, requests: string[] = []): PagedList<number> {
  return new PagedList<number>(
    async (cursor, k): Promise<Page<number>> => {
      requests.push(`${cursor ?? "start"} ${k}`);
      const start = Number(cursor ?? 0);
      const items = Array.from({ length: Math.min(k, total - start) }, (_, i) => start + i);
      return { items, next_cursor: start + k < total ? String(start + k) : null, total: cursor === null ? total : null };
    },
    { pageSize: 10, jumpSize: 50 },
  );
}
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("a list that is walked from page to page", () => {
  it("asks for what is looked at and a little more, and keeps the count", async () => {
    const requests: string[] = [];
    const pages = numbers(95, requests);
    pages.require(0);
    await settle();
    expect(pages.items).toHaveLength(10);
    expect(pages.length).toBe(95);
    pages.require(6);
    await settle();
    expect(requests).toEqual(["start 10", "10 10"]);
  });

  it("walks in long steps to a place far away, and ends at the end", async () => {
    const requests: string[] = [];
    const pages = numbers(95, requests);
    pages.require(94);
    await settle();
    expect(requests).toEqual(["start 50", "50 50"]);
    expect(pages.items).toEqual(Array.from({ length: 95 }, (_, i) => i));
    expect(pages.get().isComplete).toBe(true);
    pages.require(500);
    await settle();
    expect(requests).toHaveLength(2);
  });

  it("stops at an error and goes on when asked again", async () => {
    let broken = true;
    const pages = new PagedList<number>(async () => {
      if (broken) throw new Error("away");
      return { items: [1, 2], next_cursor: null, total: 2 };
    });
    pages.require(0);
    await settle();
    expect(pages.get().error?.message).toBe("away");
    broken = false;
    pages.retry();
    await settle();
    expect(pages.items).toEqual([1, 2]);
  });
});

describe("a list whose places have cursors", () => {
  function createNamedList(names: string[]): { pages: PagedList<string>; requests: (string | null)[] } {
    const requests: (string | null)[] = [];
    const pages = new PagedList<string>(
      async (cursor, k) => {
        requests.push(cursor);
        return { items: names.slice(Number(cursor), Number(cursor) + k), next_cursor: null, total: names.length };
      },
      { pageSize: 10, cursorAt: String },
    );
    return { pages, requests };
  }

  it("asks for what is looked at, once, wherever it is", async () => {
    const { pages, requests } = createNamedList(Array.from({ length: 95 }, (_, i) => `n${i}`));
    pages.require(5, 0);
    pages.require(12, 0);
    await settle();
    expect(requests).toEqual(["0", "10"]);
    expect([pages.length, pages.items[3], pages.items[30], pages.items.indexOf("n11")]).toEqual([95, "n3", undefined, 11]);
    pages.require(99, 90);
    await settle();
    expect(requests).toEqual(["0", "10", "90"]);
    expect([pages.items[94], pages.length]).toEqual(["n94", 95]);
  });

  it("keeps what is known until the new is there, be it more, less or nothing", async () => {
    const names = ["a", "b"];
    const { pages } = createNamedList(names);
    pages.require(1, 0);
    await settle();
    for (const updatedNames of [["c"], [], ["d", "e", "f"]]) {
      const itemsBefore = [...pages.items];
      names.splice(0, names.length, ...updatedNames);
      pages.refresh();
      expect(pages.items).toEqual(itemsBefore);
      await settle();
      expect([pages.items, pages.length]).toEqual([updatedNames, updatedNames.length]);
    }
  });

  it("takes no answer to what was asked before", async () => {
    const answers: ((page: Page<string>) => void)[] = [];
    const pages = new PagedList<string>(() => new Promise((resolve) => answers.push(resolve)), { pageSize: 10, cursorAt: String });
    pages.require(0);
    pages.refresh();
    answers[1]!({ items: ["new"], next_cursor: null, total: 1 });
    await settle();
    answers[0]!({ items: ["old"], next_cursor: null, total: 1 });
    await settle();
    expect(pages.items).toEqual(["new"]);
  });

  it("tells of trouble, and asks again when it is asked to", async () => {
    let broken = true;
    const pages = new PagedList<number>(() => (broken ? Promise.reject(new Error("gone")) : Promise.resolve({ items: [1], next_cursor: null, total: 1 })), {
      cursorAt: String,
    });
    pages.require(0);
    await settle();
    expect(pages.get().error?.message).toBe("gone");
    broken = false;
    pages.refresh();
    await settle();
    expect([pages.get().error, pages.items]).toEqual([null, [1]]);
  });
});
