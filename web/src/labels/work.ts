/** Changing labels. */

import type { ChangeResult } from "../api/types";
import { remember } from "../decisions/desk";
import { collectionChanged } from "../shell/collection";
import { say } from "../base/saying";

/** Wait for a change, do what follows from it, and tell of it; what the service said where it refused. */
export async function change(asked: Promise<ChangeResult>, told: string, then?: () => void): Promise<string | null> {
  try {
    const { entry } = await asked;
    if (entry === null) {
      say("It was so already.");
      return null;
    }
    remember(entry, told, collectionChanged);
    say(`${told}. Press z to undo.`);
    then?.(); // before everything is asked for anew
    collectionChanged();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
