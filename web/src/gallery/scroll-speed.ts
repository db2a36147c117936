/** Detection of fast scrolling, during which nothing is loaded. */

const FAST_SCROLL = 3; // pixels in a millisecond: more than three screens a second
const REST_DELAY = 120; // milliseconds without a scroll event

export class ScrollSpeed {
  isFast = false;
  private previous: { offset: number; time: number } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `onChange` is called when `isFast` changes. */
  constructor(private readonly onChange: (isFast: boolean) => void) {}

  record(offset: number, time: number = performance.now()): void {
    const { previous } = this;
    this.previous = { offset, time };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.previous = null;
      this.setFast(false);
    }, REST_DELAY);
    if (previous) this.setFast(Math.abs(offset - previous.offset) > FAST_SCROLL * Math.max(time - previous.time, 1));
  }

  private setFast(isFast: boolean): void {
    if (isFast === this.isFast) return;
    this.isFast = isFast;
    this.onChange(isFast);
  }
}
