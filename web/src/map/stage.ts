/** The map on the screen: points, names over them, and what fingers, mouse and wheel do with it. React only looks on. */

import { type Camera, cover, moved, pointSize, type Size, toMap, toScreen, whole, zoomed, zoomOf } from "./camera";
import { lookOf } from "./colours";
import { Gestures } from "./gestures";
import { Nearby } from "./nearby";
import { type Painter, painter } from "./painter";
import type { Points } from "./points";
import { type Placed, placed, type Word } from "./words";

/** What the page is told. */
export interface Told {
  hovered: (at: number, x: number, y: number) => void; // a point, or -1, and where it is on the screen
  opened: (at: number) => void;
  chosen: (at: number[], more: boolean) => void; // those within an outline
  label: (label: string) => void;
  moved: (camera: Camera) => void; // some time after the last movement
}

const NEAR = 14; // pixels within which a point is meant
const SETTLED = 150; // milliseconds
const FONT = "system-ui, sans-serif";

export class Stage {
  camera: Camera;
  private size: Size = { width: 1, height: 1 };
  private points: Points | null = null;
  private nearby: Nearby | null = null;
  private words: readonly Word[] = [];
  private codes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  private chosen: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  private looking = false;
  private lassoing = false;
  private placedAt: { scale: number; words: Placed[] } = { scale: 0, words: [] };
  private readonly widths = new Map<string, number>();
  private painter: Painter;
  private readonly over: HTMLCanvasElement;
  private readonly pen: CanvasRenderingContext2D;
  private readonly watch: ResizeObserver;
  private readonly theme: MutationObserver;
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly gestures: Gestures;
  private hovered = -1;
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly box: HTMLElement,
    private readonly told: Told,
    camera: Camera | null,
  ) {
    this.painter = this.newPainter();
    this.over = document.createElement("canvas");
    this.pen = this.over.getContext("2d")!;
    box.append(this.painter.canvas, this.over);
    this.measure();
    this.camera = camera ?? whole(this.size);
    this.watch = new ResizeObserver(() => {
      const fitted = zoomOf(this.camera, this.size);
      this.measure();
      this.camera.scale = fitted * whole(this.size).scale;
      this.redraw();
    });
    this.watch.observe(box);
    this.box.dataset["drawnBy"] = this.painter.kind;
    this.theme = new MutationObserver(this.relook);
    this.theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    this.dark.addEventListener("change", this.relook);
    this.gestures = new Gestures(box, {
      drag: (dx, dy) => this.move(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      hover: (x, y) => this.hover(x, y),
      tap: (x, y, touched) => this.tap(x, y, touched),
      lasso: () => this.lassoing,
      outline: (outline, done, more) => this.outline(outline, done, more),
    });
    this.relook();
  }

  show(points: Points): void {
    this.points = points;
    this.nearby = new Nearby(points.xy);
    [this.codes, this.chosen] = [new Uint8Array(points.ids.length), new Uint8Array(points.ids.length)];
    this.painter.points(points.xy);
    this.hovered = -1;
    this.redraw();
  }

  mark(codes: Uint8Array<ArrayBuffer> | null, chosen: Uint8Array<ArrayBuffer>): void {
    this.looking = codes !== null;
    this.codes = codes ?? new Uint8Array(chosen.length);
    this.chosen = chosen;
    this.painter.states(this.codes, chosen);
    this.redraw();
  }

  name(words: readonly Word[]): void {
    this.words = words;
    this.placedAt = { scale: 0, words: [] };
    this.redraw();
  }

  /** Whether dragging outlines. */
  lasso(on: boolean): void {
    this.lassoing = on;
    this.box.style.cursor = on ? "crosshair" : "";
  }

  move(dx: number, dy: number): void {
    this.camera = moved(this.camera, dx, dy);
    this.redraw();
  }

  zoom(factor: number, x?: number, y?: number): void {
    this.camera = zoomed(this.camera, this.size, factor, x, y);
    this.redraw();
  }

  /** See all of it again. */
  all(): void {
    this.camera = whole(this.size);
    this.redraw();
  }

  /** Bring a place into the middle, near enough to see what is around it. */
  goTo(x: number, y: number): void {
    this.camera = { x, y, scale: Math.max(this.camera.scale, 3 * whole(this.size).scale) };
    this.redraw();
  }

  /** The point nearest to the middle, for keys, which have no place of their own. */
  aim(): number {
    const { width, height } = this.size;
    const at = this.nearest(width / 2, height / 2, Math.min(width, height) / 2);
    this.point(at);
    return at;
  }

  /** The points in sight. */
  inSight(): number[] {
    const [left, top] = toMap(this.camera, this.size, 0, 0);
    const [right, bottom] = toMap(this.camera, this.size, this.size.width, this.size.height);
    return this.nearby?.inBox(left, top, right, bottom) ?? [];
  }

  /** Whether a place is in sight. */
  sees(x: number, y: number): boolean {
    const [sx, sy] = toScreen(this.camera, this.size, x, y);
    return sx >= 0 && sy >= 0 && sx <= this.size.width && sy <= this.size.height;
  }

  /** Where a point is on the screen. */
  placeOf(at: number): [number, number] {
    const xy = this.points!.xy;
    return toScreen(this.camera, this.size, xy[2 * at]!, xy[2 * at + 1]!);
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.watch.disconnect();
    this.theme.disconnect();
    this.dark.removeEventListener("change", this.relook);
    this.gestures.close();
    this.painter.close();
    this.box.replaceChildren();
  }

  private newPainter(): Painter {
    return painter(() => {
      this.painter.canvas.remove();
      this.painter = this.newPainter();
      this.box.prepend(this.painter.canvas);
      this.box.dataset["drawnBy"] = this.painter.kind;
      if (this.points) this.painter.points(this.points.xy);
      this.painter.states(this.codes, this.chosen);
      this.relook();
    });
  }

  private measure(): void {
    const { clientWidth, clientHeight } = this.box;
    this.size = { width: Math.max(1, clientWidth), height: Math.max(1, clientHeight) };
    this.over.width = Math.round(this.size.width * devicePixelRatio);
    this.over.height = Math.round(this.size.height * devicePixelRatio);
  }

  private readonly relook = (): void => {
    this.painter.look(lookOf(this.box));
    this.redraw();
  };

  private redraw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.told.moved(this.camera), SETTLED);
  }

  private draw(): void {
    const [left, top] = toMap(this.camera, this.size, 0, 0);
    const [n, zoom] = [this.points?.ids.length ?? 0, zoomOf(this.camera, this.size)];
    const size = pointSize(n, this.size, zoom);
    this.painter.draw({
      width: this.over.width,
      height: this.over.height,
      left,
      top,
      scale: this.camera.scale * devicePixelRatio,
      size: size * devicePixelRatio,
      cover: cover(n, zoom),
      looking: this.looking,
    });
    this.pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    this.pen.clearRect(0, 0, this.size.width, this.size.height);
    this.drawWords();
    this.drawHovered(size);
  }

  private drawWords(): void {
    const style = getComputedStyle(this.box);
    this.pen.textAlign = "center";
    this.pen.textBaseline = "middle";
    this.pen.lineJoin = "round";
    this.pen.lineWidth = 4;
    this.pen.strokeStyle = style.getPropertyValue("--map-halo");
    this.pen.fillStyle = style.getPropertyValue("--text");
    for (const one of this.wordsNow()) {
      const [x, y] = this.screenOf(one);
      if (x < -one.width || y < -one.height || x > this.size.width + one.width || y > this.size.height + one.height) continue;
      this.pen.font = `600 ${one.size}px ${FONT}`;
      this.pen.strokeText(one.text, x, y);
      this.pen.fillText(one.text, x, y);
    }
  }

  private wordsNow(): Placed[] {
    if (this.placedAt.scale !== this.camera.scale) {
      const zoom = zoomOf(this.camera, this.size);
      const words = placed(this.words, this.camera.scale, zoom, (text, size) => this.widthOf(text, size));
      this.placedAt = { scale: this.camera.scale, words };
    }
    return this.placedAt.words;
  }

  private screenOf(one: Placed): [number, number] {
    const [left, top] = toScreen(this.camera, this.size, 0, 0);
    return [left + one.x, top + one.y];
  }

  private widthOf(text: string, size: number): number {
    const key = `${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.pen.font = `600 ${size}px ${FONT}`;
      this.widths.set(key, (width = this.pen.measureText(text).width));
    }
    return width;
  }

  private drawHovered(size: number): void {
    if (this.hovered < 0 || this.hovered >= (this.points?.ids.length ?? 0)) return;
    const [x, y] = this.placeOf(this.hovered);
    this.pen.beginPath();
    this.pen.arc(x, y, size / 2 + 5, 0, 2 * Math.PI);
    this.pen.lineWidth = 2.5;
    this.pen.strokeStyle = getComputedStyle(this.box).getPropertyValue("--text");
    this.pen.stroke();
  }

  private nearest(x: number, y: number, pixels: number): number {
    const [mx, my] = toMap(this.camera, this.size, x, y);
    return this.nearby?.nearest(mx, my, pixels / this.camera.scale) ?? -1;
  }

  private hover(x: number, y: number): void {
    const at = this.nearest(x, y, NEAR);
    if (at !== this.hovered) this.point(at);
    this.box.style.cursor = this.lassoing ? "crosshair" : at >= 0 || this.wordAt(x, y) ? "pointer" : "grab";
  }

  private point(at: number): void {
    this.hovered = at;
    const [x, y] = at < 0 ? [0, 0] : this.placeOf(at);
    this.told.hovered(at, x, y);
    this.redraw();
  }

  private tap(x: number, y: number, touched: boolean): void {
    const at = this.nearest(x, y, touched ? 2 * NEAR : NEAR);
    const word = this.wordAt(x, y);
    if (at >= 0 && !(word && touched)) {
      if (touched && at !== this.hovered) this.point(at);
      else this.told.opened(at);
    } else if (word) this.told.label(word.label);
    else this.point(-1);
  }

  private wordAt(x: number, y: number): Word | null {
    const found = this.wordsNow().find((one) => {
      const [sx, sy] = this.screenOf(one);
      return Math.abs(sx - x) * 2 < one.width && Math.abs(sy - y) * 2 < one.height;
    });
    return found?.word ?? null;
  }

  /** An outline that is being drawn, or is done. */
  private outline(outline: [number, number][], done: boolean, more: boolean): void {
    if (done) {
      const found = this.nearby?.within(outline.map(([x, y]) => toMap(this.camera, this.size, x, y))) ?? [];
      this.told.chosen(found, more);
      this.redraw();
      return;
    }
    this.draw();
    const style = getComputedStyle(this.box);
    this.pen.beginPath();
    outline.forEach(([x, y]) => this.pen.lineTo(x, y));
    this.pen.closePath();
    this.pen.lineWidth = 2;
    this.pen.strokeStyle = style.getPropertyValue("--accent");
    this.pen.stroke();
    this.pen.globalAlpha = 0.12;
    this.pen.fillStyle = style.getPropertyValue("--accent");
    this.pen.fill();
    this.pen.globalAlpha = 1;
  }
}
