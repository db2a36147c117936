/** Permission to change the collection, as the token grants it. */

import { createStore, useStore } from "../base/store";

export const writePermission = createStore(true);

export function useWritePermission(): boolean {
  return useStore(writePermission);
}
