/** A selection from another page as a list of the gallery, in memory only. */

import { api, type ItemQuery } from "../api/client";
import type { ItemSummary } from "../api/types";
import type { LoadPage } from "../base/paged-list";
import { navigate } from "../base/router";

let selectedIds: readonly number[] = [];
let selectionNumber = 0;

/** Show items in the gallery. */
export function showInGallery(ids: readonly number[]): void {
  selectedIds = ids;
  selectionNumber += 1;
  navigate(`/?selection=${selectionNumber}`);
}

/** Create a loader of the selection's pages; other filters apply too. */
export function createSelectionLoader(filters: ItemQuery): LoadPage<ItemSummary> {
  const ids = filters.selection === String(selectionNumber) ? selectedIds : [];
  const itemFilters = { ...filters, selection: "" };
  return async (cursor, k, signal) => {
    const start = Number(cursor ?? 0);
    const pageIds = ids.slice(start, start + k);
    const nextCursor = start + k < ids.length ? String(start + k) : null;
    const items = pageIds.length ? (await api.listItems({ ...itemFilters, ids: pageIds.join(","), k }, signal)).items : [];
    return { items, next_cursor: nextCursor, total: ids.length };
  };
}
