/** Whether whoever looks at the pages may change anything: their token says so. */

import { store, useStore } from "../base/store";

export const mayWrite = store(true);

export function useMayWrite(): boolean {
  return useStore(mayWrite);
}
