/** Requests that change labels, with undo. */

import type { ChangeResult } from "../api/types";
import { recordChange } from "../decisions/decision-history";
import { refreshCollection } from "../shell/collection";
import { notify } from "../base/notifications";

/** Await a change, record it for undo, and notify; return the error message if the service refuses it. */
export async function applyChange(request: Promise<ChangeResult>, description: string, onSuccess?: () => void): Promise<string | null> {
  try {
    const { entry } = await request;
    if (entry === null) {
      notify("Nothing changed.");
      return null;
    }
    recordChange(entry, description, refreshCollection);
    notify(`${description}. Press z to undo.`);
    onSuccess?.(); // before the collection is reloaded
    refreshCollection();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
