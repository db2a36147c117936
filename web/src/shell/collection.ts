/** What the service serves, as all pages see it. */

import { api } from "../api/client";
import type { CollectionStatus } from "../api/types";
import { type Loaded, useLoad } from "../base/load";
import { store, useStore } from "../base/store";
import { settledCount } from "../decisions/desk";
import { forgetLists } from "../gallery/listing";
import { forgetDetails } from "../item/details";

/** Goes up when a job has changed the collection, so that pages ask again. */
export const collectionTurn = store(0);

export function collectionChanged(): void {
  forgetLists();
  forgetDetails();
  collectionTurn.set((n) => n + 1);
}

/** Counts and the model in use; asked again after jobs, and now and then after decisions. */
export function useCollection(): Loaded<CollectionStatus> {
  const turn = useStore(collectionTurn);
  const decided = Math.floor(useStore(settledCount) / 5);
  return useLoad(`collection ${turn} ${decided}`, api.collection);
}
