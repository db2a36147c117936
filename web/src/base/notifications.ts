/** Short messages at the foot of the page. */

import { createStore } from "./store";

export const notification = createStore<{ text: string; time: number } | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export function notify(text: string): void {
  notification.set({ text, time: Date.now() });
  clearTimeout(timer);
  timer = setTimeout(() => notification.set(null), 5000);
}
