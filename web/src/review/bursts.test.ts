import { expect, it } from "vitest";
import type { ItemSummary } from "../api/types";
import { countPictures, describeProgress, selectCards } from "./bursts";

const item = (id: number, burst: number[] = []): ItemSummary => ({ id, burst }) as unknown as ItemSummary;
const all = [item(1, [1, 2, 5]), item(2, [1, 2, 5]), item(3), item(4), item(5, [1, 2, 5]), item(6)];

it("counts pictures, not cards, whether all are loaded or not", () => {
  const loaded = { error: null, total: all.length };
  const describe = (items: ItemSummary[], isComplete: boolean): string[] => {
    const count = countPictures(items, { ...loaded, loadedCount: items.length, isComplete });
    return selectCards(items).map((card) => describeProgress(items, card, count));
  };
  expect(describe(all.slice(0, 3), false)).toEqual(["1 of 6 pictures", "3 of 6 pictures"]);
  expect(describe(all, true)).toEqual(["1 of 6 pictures", "3 of 6 pictures", "4 of 6 pictures", "6 of 6 pictures"]);
});

it("counts what is loaded if the service does not count", () => {
  const state = { error: null, total: null, loadedCount: all.length };
  expect(countPictures(all, { ...state, isComplete: false })).toBeNull();
  expect(countPictures(all, { ...state, isComplete: true })).toBe(6);
  expect(describeProgress(all, all[2]!, null)).toBe("3");
});
