/** Changing labels. */

import type { Changed } from "../api/labels";
import { remember } from "../decisions/desk";
import { collectionChanged } from "../shell/collection";
import { say } from "../shell/saying";

/** Wait for a change and tell of it; what the service said where it refused. */
export async function change(asked: Promise<Changed>, told: string): Promise<string | null> {
  try {
    const { entry } = await asked;
    if (entry === null) {
      say("It was so already.");
      return null;
    }
    remember(entry, told, collectionChanged);
    say(`${told}. Press z to undo.`);
    collectionChanged();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
