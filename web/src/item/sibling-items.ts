/** The list that the open item belongs to, for next and previous. */

import { createStore } from "../base/store";

export const siblingItems = createStore<readonly { id: number; hash: string | null }[]>([]);
