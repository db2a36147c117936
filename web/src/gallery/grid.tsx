/** Virtual grid of any length: keys move the focus, the page renders the cells. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { findTarget } from "./grid-keys";
import { ScrollSpeed } from "./scroll-speed";

export interface CellProps {
  tabIndex: number;
  "aria-colindex": number;
  "data-at": number;
}

/** A key press, from React or from the window. */
export type KeyPress = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey" | "preventDefault">;

interface Props {
  name: string;
  scrollKey: string; // key of the stored scroll position
  length: number;
  focus: number;
  minWidth: number; // least width of a cell in pixels
  extraHeight?: number; // pixels below the square of a cell
  onMove: (position: number, extend: boolean) => void;
  onKey?: (event: KeyPress) => void;
  onVisible: (lastPosition: number) => void; // the last visible position
  renderCell: (position: number, props: CellProps, isFast: boolean) => ReactNode; // isFast: the cell only scrolls past
}

const GAP = 6;
const positions = new Map<string, number>();

export function Grid(props: Props): ReactNode {
  const { name, scrollKey, length, focus, minWidth, extraHeight = 0, onMove, onKey, onVisible, renderCell } = props;
  const container = useRef<HTMLDivElement>(null);
  const [isFast, setIsFast] = useState(false);
  const [scrollSpeed] = useState(() => new ScrollSpeed(setIsFast));
  const width = useWidth(container);
  const columns = Math.max(2, Math.floor((width + GAP) / (minWidth + GAP)));
  const size = Math.max(40, (width - GAP * (columns - 1)) / columns);
  const height = size + extraHeight + GAP;
  const rows = useVirtualizer({
    count: Math.ceil(length / columns),
    getScrollElement: () => container.current,
    estimateSize: () => height,
    overscan: 4,
    initialOffset: positions.get(scrollKey) ?? 0,
  });
  useLayoutEffect(() => rows.measure(), [rows, height]);
  const visibleRows = rows.getVirtualItems();
  const lastPosition = Math.min(length, ((visibleRows.at(-1)?.index ?? 0) + 1) * columns) - 1;
  useEffect(() => onVisible(Math.max(lastPosition, 0)), [onVisible, lastPosition]);
  useFocusedCell(container, focus, () => rows.scrollToIndex(Math.floor(focus / columns)));
  const handleKey = (event: KeyPress): void => {
    const pageRows = Math.max(1, Math.floor((container.current?.clientHeight ?? 0) / height));
    const target = event.ctrlKey || event.metaKey || event.altKey ? null : findTarget(event.key, focus, columns, length, pageRows);
    if (target === null) {
      onKey?.(event);
      return;
    }
    event.preventDefault();
    onMove(target, event.shiftKey);
  };
  useUnfocusedKeys(container, focus, handleKey);
  return (
    <div
      ref={container}
      className="grid"
      role="grid"
      aria-label={name}
      aria-rowcount={Math.ceil(length / columns)}
      aria-colcount={columns}
      aria-multiselectable="true"
      onKeyDown={handleKey}
      onScroll={(event) => {
        positions.set(scrollKey, event.currentTarget.scrollTop);
        scrollSpeed.record(event.currentTarget.scrollTop);
      }}
    >
      <div role="presentation" className="grid-content" style={{ height: rows.getTotalSize() }}>
        {width > 0 &&
          visibleRows.map((row) => (
            <div
              key={row.key}
              role="row"
              aria-rowindex={row.index + 1}
              className="grid-row"
              style={{ transform: `translateY(${row.start}px)`, gridTemplateColumns: `repeat(${columns}, ${size}px)` }}
            >
              {Array.from({ length: Math.min(columns, length - row.index * columns) }, (_, i) => {
                const position = row.index * columns + i;
                return renderCell(position, { tabIndex: position === focus ? 0 : -1, "aria-colindex": i + 1, "data-at": position }, isFast);
              })}
            </div>
          ))}
      </div>
    </div>
  );
}

function useWidth(container: React.RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = container.current;
    if (!node) return;
    const measureWidth = (): number => node.clientWidth - 2 * parseFloat(getComputedStyle(node).paddingLeft);
    const observer = new ResizeObserver(() => setWidth(measureWidth()));
    observer.observe(node);
    return () => observer.disconnect();
  }, [container]);
  return width;
}

/** Handle keys while neither a picture nor a field has the focus; the picture then takes it. */
function useUnfocusedKeys(container: React.RefObject<HTMLDivElement | null>, focus: number, handleKey: (event: KeyPress) => void): void {
  const latest = useRef({ focus, handleKey });
  useLayoutEffect(() => {
    latest.current = { focus, handleKey };
  });
  useEffect(() => {
    const handle = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      const isFree = target === document.body || (target.closest(".toolbar button") && event.key !== "Enter" && event.key !== " ");
      if (!isFree || document.querySelector("dialog[open]")) return;
      const cell = container.current?.querySelector<HTMLElement>(`[data-at="${latest.current.focus}"]`);
      latest.current.handleKey(event);
      if (event.defaultPrevented) cell?.focus({ preventScroll: true });
    };
    window.addEventListener("keydown", handle, true); // before the shortcuts of the page
    return () => window.removeEventListener("keydown", handle, true);
  }, [container]);
}

/** Scroll the focused cell into view, and focus it if the focus is in the grid. */
function useFocusedCell(container: React.RefObject<HTMLDivElement | null>, focus: number, reveal: () => void): void {
  const previousFocus = useRef(focus);
  useEffect(() => {
    if (previousFocus.current === focus) return;
    previousFocus.current = focus;
    const hasFocus = (): boolean => container.current?.contains(document.activeElement) ?? false;
    const focusCell = (): void => container.current?.querySelector<HTMLElement>(`[data-at="${focus}"]`)?.focus({ preventScroll: true });
    const hadFocus = hasFocus();
    reveal();
    if (!hadFocus) return;
    focusCell();
    // A cell that is only now in view takes the focus too, unless a text field or another cell has got it in between.
    const isFree = (): boolean => previousFocus.current === focus && (hasFocus() || document.activeElement === document.body);
    requestAnimationFrame(() => requestAnimationFrame(() => isFree() && focusCell()));
  }, [container, focus, reveal]);
}
