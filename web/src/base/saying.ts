/** One line at the foot of the page that says what has just happened. */

import { store } from "./store";

export const said = store<{ text: string; at: number } | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  said.set({ text, at: Date.now() });
  clearTimeout(timer);
  timer = setTimeout(() => said.set(null), 5000);
}
