/** Gestures on the map: drag, zoom by wheel or two fingers, outline with Shift or in lasso mode, tap. */

export interface GestureHandlers {
  drag: (dx: number, dy: number) => void;
  zoom: (factor: number, x: number, y: number) => void;
  hover: (x: number, y: number) => void;
  tap: (x: number, y: number, isTouch: boolean) => void;
  isLasso: () => boolean; // true if dragging draws an outline without Shift
  outline: (outline: [number, number][], isDone: boolean, isAdditive: boolean) => void;
}

const TAP_TOLERANCE = 5; // most movement of a tap, in pixels
const CORNER_DISTANCE = 3; // pixels between two corners of an outline

export class Gestures {
  private readonly pointers = new Map<number, [number, number]>();
  private outline: [number, number][] | null = null;
  private distance = 0;
  private wasPinched = false;
  private readonly controller = new AbortController();

  constructor(
    private readonly box: HTMLElement,
    private readonly handlers: GestureHandlers,
  ) {
    const { signal } = this.controller;
    box.addEventListener("pointerdown", this.handleDown, { signal });
    box.addEventListener("pointermove", this.handleMove, { signal });
    box.addEventListener("pointerup", this.handleUp, { signal });
    box.addEventListener("pointercancel", this.handleCancel, { signal });
    box.addEventListener("pointerleave", () => this.handlers.hover(-1e6, -1e6), { signal });
    box.addEventListener("wheel", this.handleWheel, { signal, passive: false });
  }

  close(): void {
    this.controller.abort();
  }

  private locate(event: MouseEvent): [number, number] {
    const box = this.box.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  private readonly handleDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const position = this.locate(event);
    this.pointers.set(event.pointerId, position);
    this.box.setPointerCapture(event.pointerId);
    if (this.pointers.size > 1) {
      this.wasPinched = true;
      this.outline = null;
      return;
    }
    this.distance = 0;
    this.wasPinched = false;
    this.outline = event.shiftKey || this.handlers.isLasso() ? [position] : null;
  };

  private readonly handleMove = (event: PointerEvent): void => {
    const [x, y] = this.locate(event);
    const previous = this.pointers.get(event.pointerId);
    if (!previous) {
      if (event.pointerType !== "touch") this.handlers.hover(x, y);
      return;
    }
    const [dx, dy] = [x - previous[0], y - previous[1]];
    if (this.outline) {
      const lastCorner = this.outline.at(-1)!;
      if (Math.hypot(x - lastCorner[0], y - lastCorner[1]) >= CORNER_DISTANCE) this.outline.push([x, y]);
      this.pointers.set(event.pointerId, [x, y]);
      this.distance += Math.hypot(dx, dy);
      this.handlers.outline(this.outline, false, false);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, previous, [x, y]);
    else if (this.distance + Math.hypot(dx, dy) > TAP_TOLERANCE && this.pointers.size === 1) this.handlers.drag(dx, dy);
    this.distance += Math.hypot(dx, dy);
    this.pointers.set(event.pointerId, [x, y]);
  };

  /** Move and zoom the map with two fingers. */
  private pinch(id: number, previous: [number, number], current: [number, number]): void {
    const fixedPointer = [...this.pointers].find(([key]) => key !== id)![1];
    const measureDistance = (a: [number, number]): number => Math.max(1, Math.hypot(a[0] - fixedPointer[0], a[1] - fixedPointer[1]));
    this.handlers.drag((current[0] - previous[0]) / 2, (current[1] - previous[1]) / 2);
    this.handlers.zoom(measureDistance(current) / measureDistance(previous), (current[0] + fixedPointer[0]) / 2, (current[1] + fixedPointer[1]) / 2);
  }

  private readonly handleUp = (event: PointerEvent): void => {
    if (!this.pointers.delete(event.pointerId)) return;
    const [x, y] = this.locate(event);
    if (this.outline && this.distance > TAP_TOLERANCE) this.handlers.outline(this.outline, true, event.ctrlKey || event.metaKey);
    else if (this.distance <= TAP_TOLERANCE && !this.wasPinched) this.handlers.tap(x, y, event.pointerType === "touch");
    this.outline = null;
  };

  private readonly handleCancel = (event: PointerEvent): void => {
    this.pointers.delete(event.pointerId);
    if (this.outline) this.handlers.outline([], true, true);
    this.outline = null;
  };

  private readonly handleWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaY * [1, 18, 400][event.deltaMode]!;
    this.handlers.zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) * (event.ctrlKey ? 0.01 : 0.0018)), ...this.locate(event));
  };
}
