/** The map on the screen, outside React: points, label names, gestures. */

import { type Camera, computeOpacity, panCamera, computePointSize, type Size, projectToMap, projectToScreen, createCamera, zoomCamera, computeZoom } from "./camera";
import { readPointColours } from "../painters/colours";
import { Gestures } from "./gestures";
import { PointIndex } from "../data/point-index";
import { type Painter, createPainter } from "../painters/painter";
import type { Points } from "../data/points";
import { type PlacedLabel, placeLabels, type MapLabel } from "./label-layout";

/** Events for the page. */
export interface StageHandlers {
  onHover: (point: number, x: number, y: number) => void; // a point, or -1, and its position on the screen
  onOpen: (point: number) => void;
  onSelect: (points: number[], isAdditive: boolean) => void; // the points within an outline
  onLabel: (name: string) => void;
  onMove: (camera: Camera) => void; // after the last movement, with a delay
}

const POINT_RADIUS = 14; // pixels around a point that count as hitting it
const MOVE_DELAY = 150; // milliseconds
const FONT_FAMILY = "system-ui, sans-serif";

export class Stage {
  camera: Camera;
  private size: Size = { width: 1, height: 1 };
  private points: Points | null = null;
  private pointIndex: PointIndex | null = null;
  private labels: readonly MapLabel[] = [];
  private codes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  private selection: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  private hasLabel = false;
  private isLasso = false;
  private layout: { scale: number; labels: PlacedLabel[] } = { scale: 0, labels: [] };
  private readonly widths = new Map<string, number>();
  private painter: Painter;
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private readonly resizeObserver: ResizeObserver;
  private readonly themeObserver: MutationObserver;
  private readonly darkScheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly gestures: Gestures;
  private hoveredPoint = -1;
  private frameRequest = 0;
  private moveTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly box: HTMLElement,
    private readonly handlers: StageHandlers,
    camera: Camera | null,
  ) {
    this.painter = this.replacePainter();
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d")!;
    box.append(this.painter.canvas, this.canvas);
    this.measureSize();
    this.camera = camera ?? createCamera(this.size);
    this.resizeObserver = new ResizeObserver(() => {
      const zoom = computeZoom(this.camera, this.size);
      this.measureSize();
      this.camera.scale = zoom * createCamera(this.size).scale;
      this.requestDraw();
    });
    this.resizeObserver.observe(box);
    this.box.dataset["drawnBy"] = this.painter.kind;
    this.themeObserver = new MutationObserver(this.updateColours);
    this.themeObserver.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    this.darkScheme.addEventListener("change", this.updateColours);
    this.gestures = new Gestures(box, {
      drag: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      hover: (x, y) => this.handleHover(x, y),
      tap: (x, y, isTouch) => this.handleTap(x, y, isTouch),
      isLasso: () => this.isLasso,
      outline: (outline, isDone, isAdditive) => this.handleOutline(outline, isDone, isAdditive),
    });
    this.updateColours();
  }

  setPoints(points: Points): void {
    this.points = points;
    this.pointIndex = new PointIndex(points.xy);
    [this.codes, this.selection] = [new Uint8Array(points.ids.length), new Uint8Array(points.ids.length)];
    this.painter.setPoints(points.xy);
    this.hoveredPoint = -1;
    this.requestDraw();
  }

  setMarks(codes: Uint8Array<ArrayBuffer> | null, selection: Uint8Array<ArrayBuffer>): void {
    this.hasLabel = codes !== null;
    this.codes = codes ?? new Uint8Array(selection.length);
    this.selection = selection;
    this.painter.setStates(this.codes, selection);
    this.requestDraw();
  }

  setLabels(labels: readonly MapLabel[]): void {
    this.labels = labels;
    this.layout = { scale: 0, labels: [] };
    this.requestDraw();
  }

  /** Set whether dragging draws an outline. */
  setLasso(isOn: boolean): void {
    this.isLasso = isOn;
    this.box.style.cursor = isOn ? "crosshair" : "";
  }

  pan(dx: number, dy: number): void {
    this.camera = panCamera(this.camera, dx, dy);
    this.requestDraw();
  }

  zoom(factor: number, x?: number, y?: number): void {
    this.camera = zoomCamera(this.camera, this.size, factor, x, y);
    this.requestDraw();
  }

  /** Show the whole map. */
  showAll(): void {
    this.camera = createCamera(this.size);
    this.requestDraw();
  }

  /** Centre a position and zoom in. */
  goTo(x: number, y: number): void {
    this.camera = { x, y, scale: Math.max(this.camera.scale, 3 * createCamera(this.size).scale) };
    this.requestDraw();
  }

  /** Hover the point nearest to the centre, for keyboard use; return it. */
  selectCentre(): number {
    const { width, height } = this.size;
    const point = this.findNearest(width / 2, height / 2, Math.min(width, height) / 2);
    this.setHovered(point);
    return point;
  }

  /** List the visible points. */
  listVisible(): number[] {
    const [left, top] = projectToMap(this.camera, this.size, 0, 0);
    const [right, bottom] = projectToMap(this.camera, this.size, this.size.width, this.size.height);
    return this.pointIndex?.findInBox(left, top, right, bottom) ?? [];
  }

  /** True if a position is visible. */
  isVisible(x: number, y: number): boolean {
    const [sx, sy] = projectToScreen(this.camera, this.size, x, y);
    return sx >= 0 && sy >= 0 && sx <= this.size.width && sy <= this.size.height;
  }

  /** Return the position of a point on the screen. */
  locatePoint(point: number): [number, number] {
    const xy = this.points!.xy;
    return projectToScreen(this.camera, this.size, xy[2 * point]!, xy[2 * point + 1]!);
  }

  close(): void {
    cancelAnimationFrame(this.frameRequest);
    clearTimeout(this.moveTimer);
    this.resizeObserver.disconnect();
    this.themeObserver.disconnect();
    this.darkScheme.removeEventListener("change", this.updateColours);
    this.gestures.close();
    this.painter.close();
    this.box.replaceChildren();
  }

  private replacePainter(): Painter {
    return createPainter(() => {
      this.painter.canvas.remove();
      this.painter = this.replacePainter();
      this.box.prepend(this.painter.canvas);
      this.box.dataset["drawnBy"] = this.painter.kind;
      if (this.points) this.painter.setPoints(this.points.xy);
      this.painter.setStates(this.codes, this.selection);
      this.updateColours();
    });
  }

  private measureSize(): void {
    const { clientWidth, clientHeight } = this.box;
    this.size = { width: Math.max(1, clientWidth), height: Math.max(1, clientHeight) };
    this.canvas.width = Math.round(this.size.width * devicePixelRatio);
    this.canvas.height = Math.round(this.size.height * devicePixelRatio);
  }

  private readonly updateColours = (): void => {
    this.painter.setColours(readPointColours(this.box));
    this.requestDraw();
  };

  private requestDraw(): void {
    this.frameRequest ||= requestAnimationFrame(() => {
      this.frameRequest = 0;
      this.draw();
    });
    clearTimeout(this.moveTimer);
    this.moveTimer = setTimeout(() => this.handlers.onMove(this.camera), MOVE_DELAY);
  }

  private draw(): void {
    const [left, top] = projectToMap(this.camera, this.size, 0, 0);
    const [n, zoom] = [this.points?.ids.length ?? 0, computeZoom(this.camera, this.size)];
    const size = computePointSize(n, this.size, zoom);
    this.painter.draw({
      width: this.canvas.width,
      height: this.canvas.height,
      left,
      top,
      scale: this.camera.scale * devicePixelRatio,
      size: size * devicePixelRatio,
      opacity: computeOpacity(n, zoom),
      hasLabel: this.hasLabel,
    });
    this.context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    this.context.clearRect(0, 0, this.size.width, this.size.height);
    this.drawLabels();
    this.drawHovered(size);
  }

  private drawLabels(): void {
    const style = getComputedStyle(this.box);
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.context.lineJoin = "round";
    this.context.lineWidth = 4;
    this.context.strokeStyle = style.getPropertyValue("--map-halo");
    this.context.fillStyle = style.getPropertyValue("--text");
    for (const label of this.placeVisibleLabels()) {
      const [x, y] = this.locateLabel(label);
      if (x < -label.width || y < -label.height || x > this.size.width + label.width || y > this.size.height + label.height) continue;
      this.context.font = `600 ${label.size}px ${FONT_FAMILY}`;
      this.context.strokeText(label.text, x, y);
      this.context.fillText(label.text, x, y);
    }
  }

  private placeVisibleLabels(): PlacedLabel[] {
    if (this.layout.scale !== this.camera.scale) {
      const zoom = computeZoom(this.camera, this.size);
      const labels = placeLabels(this.labels, this.camera.scale, zoom, (text, size) => this.measureText(text, size));
      this.layout = { scale: this.camera.scale, labels };
    }
    return this.layout.labels;
  }

  private locateLabel(label: PlacedLabel): [number, number] {
    const [left, top] = projectToScreen(this.camera, this.size, 0, 0);
    const [x, half] = [left + label.x, label.width / 2];
    const isVisible = x > 0 && x < this.size.width && label.width < this.size.width;
    return [isVisible ? Math.min(Math.max(x, half), this.size.width - half) : x, top + label.y];  // at an edge it is not cut
  }

  private measureText(text: string, size: number): number {
    const key = `${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.context.font = `600 ${size}px ${FONT_FAMILY}`;
      this.widths.set(key, (width = this.context.measureText(text).width));
    }
    return width;
  }

  private drawHovered(size: number): void {
    if (this.hoveredPoint < 0 || this.hoveredPoint >= (this.points?.ids.length ?? 0)) return;
    const [x, y] = this.locatePoint(this.hoveredPoint);
    this.context.beginPath();
    this.context.arc(x, y, size / 2 + 5, 0, 2 * Math.PI);
    this.context.lineWidth = 2.5;
    this.context.strokeStyle = getComputedStyle(this.box).getPropertyValue("--text");
    this.context.stroke();
  }

  private findNearest(x: number, y: number, pixels: number): number {
    const [mx, my] = projectToMap(this.camera, this.size, x, y);
    return this.pointIndex?.findNearest(mx, my, pixels / this.camera.scale) ?? -1;
  }

  private handleHover(x: number, y: number): void {
    const point = this.findNearest(x, y, POINT_RADIUS);
    if (point !== this.hoveredPoint) this.setHovered(point);
    this.box.style.cursor = this.isLasso ? "crosshair" : point >= 0 || this.findLabelAt(x, y) ? "pointer" : "grab";
  }

  private setHovered(point: number): void {
    this.hoveredPoint = point;
    const [x, y] = point < 0 ? [0, 0] : this.locatePoint(point);
    this.handlers.onHover(point, x, y);
    this.requestDraw();
  }

  private handleTap(x: number, y: number, isTouch: boolean): void {
    const point = this.findNearest(x, y, isTouch ? 2 * POINT_RADIUS : POINT_RADIUS);
    const label = this.findLabelAt(x, y);
    if (point >= 0 && !(label && isTouch)) {
      if (isTouch && point !== this.hoveredPoint) this.setHovered(point);
      else this.handlers.onOpen(point);
    } else if (label) this.handlers.onLabel(label.label);
    else this.setHovered(-1);
  }

  private findLabelAt(x: number, y: number): MapLabel | null {
    const match = this.placeVisibleLabels().find((placedLabel) => {
      const [sx, sy] = this.locateLabel(placedLabel);
      return Math.abs(sx - x) * 2 < placedLabel.width && Math.abs(sy - y) * 2 < placedLabel.height;
    });
    return match?.mapLabel ?? null;
  }

  /** Draw an outline, or select its points once it is done. */
  private handleOutline(outline: [number, number][], isDone: boolean, isAdditive: boolean): void {
    if (isDone) {
      const points = this.pointIndex?.findInOutline(outline.map(([x, y]) => projectToMap(this.camera, this.size, x, y))) ?? [];
      this.handlers.onSelect(points, isAdditive);
      this.requestDraw();
      return;
    }
    this.draw();
    const style = getComputedStyle(this.box);
    this.context.beginPath();
    outline.forEach(([x, y]) => this.context.lineTo(x, y));
    this.context.closePath();
    this.context.lineWidth = 2;
    this.context.strokeStyle = style.getPropertyValue("--accent");
    this.context.stroke();
    this.context.globalAlpha = 0.12;
    this.context.fillStyle = style.getPropertyValue("--accent");
    this.context.fill();
    this.context.globalAlpha = 1;
  }
}
