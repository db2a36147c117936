/** What mouse, wheel and fingers do on the map: drag, zoom with the wheel or two fingers, outline with Shift or where that is chosen, tap. */

export interface Heard {
  drag: (dx: number, dy: number) => void;
  zoom: (factor: number, x: number, y: number) => void;
  hover: (x: number, y: number) => void;
  tap: (x: number, y: number, touched: boolean) => void;
  lasso: () => boolean; // whether dragging outlines without Shift
  outline: (outline: [number, number][], done: boolean, more: boolean) => void;
}

const STILL = 5; // pixels that a tap may move
const STEP = 3; // pixels between two corners of an outline

export class Gestures {
  private readonly pointers = new Map<number, [number, number]>();
  private outline: [number, number][] | null = null;
  private travelled = 0;
  private pinched = false;
  private readonly stop = new AbortController();

  constructor(
    private readonly box: HTMLElement,
    private readonly heard: Heard,
  ) {
    const { signal } = this.stop;
    box.addEventListener("pointerdown", this.down, { signal });
    box.addEventListener("pointermove", this.move, { signal });
    box.addEventListener("pointerup", this.up, { signal });
    box.addEventListener("pointercancel", this.cancel, { signal });
    box.addEventListener("pointerleave", () => this.heard.hover(-1e6, -1e6), { signal });
    box.addEventListener("wheel", this.wheel, { signal, passive: false });
  }

  close(): void {
    this.stop.abort();
  }

  private place(event: MouseEvent): [number, number] {
    const box = this.box.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  private readonly down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const at = this.place(event);
    this.pointers.set(event.pointerId, at);
    this.box.setPointerCapture(event.pointerId);
    if (this.pointers.size > 1) {
      this.pinched = true;
      this.outline = null;
      return;
    }
    this.travelled = 0;
    this.pinched = false;
    this.outline = event.shiftKey || this.heard.lasso() ? [at] : null;
  };

  private readonly move = (event: PointerEvent): void => {
    const [x, y] = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.heard.hover(x, y);
      return;
    }
    const [dx, dy] = [x - before[0], y - before[1]];
    if (this.outline) {
      const last = this.outline.at(-1)!;
      if (Math.hypot(x - last[0], y - last[1]) >= STEP) this.outline.push([x, y]);
      this.pointers.set(event.pointerId, [x, y]);
      this.travelled += Math.hypot(dx, dy);
      this.heard.outline(this.outline, false, false);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, [x, y]);
    else if (this.travelled + Math.hypot(dx, dy) > STILL && this.pointers.size === 1) this.heard.drag(dx, dy);
    this.travelled += Math.hypot(dx, dy);
    this.pointers.set(event.pointerId, [x, y]);
  };

  /** Two fingers: the map goes with them. */
  private pinch(id: number, before: [number, number], now: [number, number]): void {
    const other = [...this.pointers].find(([key]) => key !== id)![1];
    const apart = (a: [number, number]): number => Math.max(1, Math.hypot(a[0] - other[0], a[1] - other[1]));
    this.heard.drag((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    this.heard.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }

  private readonly up = (event: PointerEvent): void => {
    if (!this.pointers.delete(event.pointerId)) return;
    const [x, y] = this.place(event);
    if (this.outline && this.travelled > STILL) this.heard.outline(this.outline, true, event.ctrlKey || event.metaKey);
    else if (this.travelled <= STILL && !this.pinched) this.heard.tap(x, y, event.pointerType === "touch");
    this.outline = null;
  };

  private readonly cancel = (event: PointerEvent): void => {
    this.pointers.delete(event.pointerId);
    if (this.outline) this.heard.outline([], true, true);
    this.outline = null;
  };

  private readonly wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaY * [1, 18, 400][event.deltaMode]!;
    this.heard.zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) * (event.ctrlKey ? 0.01 : 0.0018)), ...this.place(event));
  };
}
