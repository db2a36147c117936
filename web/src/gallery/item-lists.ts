/** Lists of items by query; the last few are cached, so that going back is quick. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { api, type ItemQuery } from "../api/client";
import type { ItemSummary } from "../api/types";
import { type LoadPage, PagedList, type ListState } from "../base/paged-list";
import { createSelectionLoader } from "./external-selection";

const MAX_LISTS = 4;
const lists = new Map<string, PagedList<ItemSummary>>();

function getList(key: string, filters: ItemQuery): PagedList<ItemSummary> {
  const cachedList = lists.get(key);
  if (cachedList) {
    lists.delete(key);
    lists.set(key, cachedList);
    return cachedList;
  }
  const load: LoadPage<ItemSummary> = (cursor, k, signal) => api.listItems({ ...filters, cursor, k }, signal);
  const newList = new PagedList<ItemSummary>(filters.selection ? createSelectionLoader(filters) : load);
  lists.set(key, newList);
  for (const [oldKey, pages] of lists) {
    if (lists.size <= MAX_LISTS) break;
    lists.delete(oldKey);
    pages.close();
  }
  return newList;
}

/** Drop all lists; the collection has changed. */
export function clearLists(): void {
  lists.forEach((pages) => pages.close());
  lists.clear();
}

export function useItemList(filters: ItemQuery, version: number | string): { pages: PagedList<ItemSummary>; state: ListState; key: string } {
  const key = `${version} ${JSON.stringify(filters)}`;
  const pages = useMemo(() => getList(key, filters), [key]); // eslint-disable-line react-hooks/exhaustive-deps
  const state = useSyncExternalStore(pages.subscribe, pages.get);
  useEffect(() => pages.require(0), [pages]);
  return { pages, state, key };
}
