/** Bursts: pictures that are alike, which the review shows as one card. */

import type { ItemSummary } from "../api/types";
import { formatCount, formatNumber } from "../base/format";
import type { ListState, PagedList } from "../base/paged-list";

/** Return the first item of each burst. */
export function selectCards(items: readonly ItemSummary[]): ItemSummary[] {
  const keys = new Set<number>();
  return items.filter((item) => {
    const key = item.burst[0] ?? item.id;
    if (keys.has(key)) return false;
    keys.add(key);
    return true;
  });
}

/** Count the pictures of a list, those of bursts too; null while unknown. */
export function countPictures(items: readonly ItemSummary[], { total, isComplete }: ListState): number | null {
  return total ?? (isComplete ? items.length : null);
}

/** Describe the place of a card among all pictures; the next card may be several pictures on. */
export function describeProgress(items: readonly ItemSummary[], card: ItemSummary, count: number | null): string {
  const place = formatNumber(items.indexOf(card) + 1);
  return count === null ? place : `${place} of ${formatCount(count, "picture")}`;
}

/** Return the ids of the items that a decision on a card covers, its own first. */
export function listBurst(item: ItemSummary): number[] {
  return [item.id, ...item.burst.filter((id) => id !== item.id)];
}

/** Find the card that shows an item. */
export function findCard(cards: readonly ItemSummary[], id: number): number {
  return cards.findIndex((card) => card.id === id || card.burst.includes(id));
}

/** Return the items of all cards, burst by burst. */
export function listSiblings(cards: readonly ItemSummary[], items: readonly ItemSummary[]): { id: number; hash: string | null }[] {
  const hashes = new Map(items.map((item) => [item.id, item.hash]));
  return cards.flatMap(listBurst).map((id) => ({ id, hash: hashes.get(id) ?? null }));
}

/** Load the items behind a card. */
export function requireCard(pages: PagedList<ItemSummary>, cards: readonly ItemSummary[], position: number): void {
  pages.require(position + pages.items.length - cards.length);
}
