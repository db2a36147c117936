/** A selection that another page has made, as a list of the gallery; it is not kept when the page is loaded again. */

import { api, type ItemQuery } from "../api/client";
import type { ItemSummary } from "../api/types";
import type { LoadPage } from "../base/pages";
import { go } from "../base/router";

let picked: readonly number[] = [];
let turn = 0;

/** Show some items in the gallery. */
export function showPicked(ids: readonly number[]): void {
  picked = ids;
  turn += 1;
  go(`/?picked=${turn}`);
}

/** Pages of the selection, in its order but for that within a page; other filters hold too. */
export function pickedPage(asked: ItemQuery): LoadPage<ItemSummary> {
  const ids = asked.picked === String(turn) ? picked : [];
  const rest = { ...asked, picked: "" };
  return async (cursor, k, signal) => {
    const from = Number(cursor ?? 0);
    const some = ids.slice(from, from + k);
    const next = from + k < ids.length ? String(from + k) : null;
    const items = some.length ? (await api.items({ ...rest, ids: some.join(","), k }, signal)).items : [];
    return { items, next_cursor: next, total: ids.length };
  };
}
