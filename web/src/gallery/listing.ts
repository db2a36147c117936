/** Lists of items by what they were asked for; the last few are kept, so that going back is quick. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { api, type ItemQuery } from "../api/client";
import type { ItemSummary } from "../api/types";
import { type LoadPage, Pages, type PagesState } from "../base/pages";
import { pickedPage } from "./picked";

const KEPT = 4;
const lists = new Map<string, Pages<ItemSummary>>();

function listOf(key: string, asked: ItemQuery): Pages<ItemSummary> {
  const known = lists.get(key);
  if (known) {
    lists.delete(key);
    lists.set(key, known);
    return known;
  }
  const load: LoadPage<ItemSummary> = (cursor, k, signal) => api.items({ ...asked, cursor, k }, signal);
  const made = new Pages<ItemSummary>(asked.picked ? pickedPage(asked) : load);
  lists.set(key, made);
  for (const [old, pages] of lists) {
    if (lists.size <= KEPT) break;
    lists.delete(old);
    pages.close();
  }
  return made;
}

/** Forget all lists: the collection has changed. */
export function forgetLists(): void {
  lists.forEach((pages) => pages.close());
  lists.clear();
}

export function useListing(asked: ItemQuery, turn: number | string): { pages: Pages<ItemSummary>; state: PagesState; key: string } {
  const key = `${turn} ${JSON.stringify(asked)}`;
  const pages = useMemo(() => listOf(key, asked), [key]); // eslint-disable-line react-hooks/exhaustive-deps
  const state = useSyncExternalStore(pages.subscribe, pages.get);
  useEffect(() => pages.need(0), [pages]);
  return { pages, state, key };
}
