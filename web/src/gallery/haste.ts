/** Whether a list is scrolled so fast that nobody sees what passes: what is not there yet need not be asked for then. */

const FAST = 3; // pixels in a millisecond: more than three screens a second
const REST = 120; // milliseconds without a scroll, after which it rests

export class Haste {
  fast = false;
  private last: { offset: number; at: number } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `changed` is called when `fast` becomes another. */
  constructor(private readonly changed: (fast: boolean) => void) {}

  scrolled(offset: number, at: number = performance.now()): void {
    const { last } = this;
    this.last = { offset, at };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.last = null;
      this.set(false);
    }, REST);
    if (last) this.set(Math.abs(offset - last.offset) > FAST * Math.max(at - last.at, 1));
  }

  private set(fast: boolean): void {
    if (fast === this.fast) return;
    this.fast = fast;
    this.changed(fast);
  }
}
