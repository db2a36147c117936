/** Changing labels, and taking it back. */

import { api } from "../api/client";
import type { Changed } from "../api/labels";
import { collectionChanged } from "../shell/collection";
import { say } from "../shell/saying";

const made: { entry: number; told: string }[] = [];

/** Wait for a change and tell of it; what the service said where it refused. */
export async function change(asked: Promise<Changed>, told: string): Promise<string | null> {
  try {
    const { entry } = await asked;
    if (entry === null) {
      say("It was so already.");
      return null;
    }
    made.push({ entry, told });
    say(`${told}. Press z to undo.`);
    collectionChanged();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Take back what was changed last on this page. */
export async function takeBack(): Promise<void> {
  const last = made.pop();
  if (!last) {
    say("Nothing to undo on this page; the history is under Status.");
    return;
  }
  try {
    await api.undo(last.entry);
    say(`Taken back: ${last.told}`);
    collectionChanged();
  } catch (error) {
    made.push(last);
    say((error as Error).message);
  }
}
