/** The list that an open item was opened from, for going on to the next. */

import { store } from "../base/store";

export const listed = store<readonly { id: number; hash: string | null }[]>([]);
