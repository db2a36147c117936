/** State of the collection, shared by all pages. */

import { api } from "../api/client";
import type { CollectionStatus } from "../api/types";
import { type LoadResult, useLoad } from "../base/loading";
import { createStore, useStore } from "../base/store";
import { answerCount } from "../decisions/decision-history";
import { clearLists } from "../gallery/item-lists";
import { clearDetails } from "../item/detail-cache";

/** Increases when a job has changed the collection, so that pages reload. */
export const collectionVersion = createStore(0);

export function refreshCollection(): void {
  clearLists();
  clearDetails();
  collectionVersion.set((n) => n + 1);
}

/** Return counts and the model in use; reloaded after jobs and every few decisions. */
export function useCollection(): LoadResult<CollectionStatus> {
  const version = useStore(collectionVersion);
  const decisionStep = Math.floor(useStore(answerCount) / 5);
  return useLoad(`collection ${version} ${decisionStep}`, api.getCollection);
}
