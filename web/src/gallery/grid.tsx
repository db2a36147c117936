/** A grid of any length, of which only the rows in sight exist. Keys move in it; its cells are drawn by the page. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Haste } from "./haste";
import { target } from "./selection";

export interface CellProps {
  tabIndex: number;
  "aria-colindex": number;
  "data-at": number;
}

interface Props {
  name: string;
  place: string; // by which the scroll position is remembered
  length: number;
  focus: number;
  smallest: number; // pixels a cell is wide at least
  extra?: number; // pixels of a cell below its square
  onMove: (to: number, extend: boolean) => void;
  onKey?: (event: KeyboardEvent) => void;
  onSeen: (last: number) => void; // the last position in sight
  cell: (at: number, props: CellProps, fast: boolean) => ReactNode; // fast: nobody sees it, it only passes
}

const GAP = 6;
const positions = new Map<string, number>();

export function Grid(props: Props): ReactNode {
  const { name, place, length, focus, smallest, extra = 0, onMove, onKey, onSeen, cell } = props;
  const box = useRef<HTMLDivElement>(null);
  const [fast, setFast] = useState(false);
  const [haste] = useState(() => new Haste(setFast));
  const width = useWidth(box);
  const columns = Math.max(2, Math.floor((width + GAP) / (smallest + GAP)));
  const size = Math.max(40, (width - GAP * (columns - 1)) / columns);
  const height = size + extra + GAP;
  const rows = useVirtualizer({
    count: Math.ceil(length / columns),
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 4,
    initialOffset: positions.get(place) ?? 0,
  });
  useLayoutEffect(() => rows.measure(), [rows, height]);
  const seen = rows.getVirtualItems();
  const last = Math.min(length, ((seen.at(-1)?.index ?? 0) + 1) * columns) - 1;
  useEffect(() => onSeen(Math.max(last, 0)), [onSeen, last]);
  useFocused(box, focus, () => rows.scrollToIndex(Math.floor(focus / columns)));
  const heard = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / height));
    const to = event.ctrlKey || event.metaKey || event.altKey ? null : target(event.key, focus, columns, length, page);
    if (to === null) {
      onKey?.(event);
      return;
    }
    event.preventDefault();
    onMove(to, event.shiftKey);
  };
  return (
    <div
      ref={box}
      className="grid"
      role="grid"
      aria-label={name}
      aria-rowcount={Math.ceil(length / columns)}
      aria-colcount={columns}
      aria-multiselectable="true"
      onKeyDown={heard}
      onScroll={(event) => {
        positions.set(place, event.currentTarget.scrollTop);
        haste.scrolled(event.currentTarget.scrollTop);
      }}
    >
      <div role="presentation" className="grid-all" style={{ height: rows.getTotalSize() }}>
        {width > 0 &&
          seen.map((row) => (
            <div
              key={row.key}
              role="row"
              aria-rowindex={row.index + 1}
              className="grid-row"
              style={{ transform: `translateY(${row.start}px)`, gridTemplateColumns: `repeat(${columns}, ${size}px)` }}
            >
              {Array.from({ length: Math.min(columns, length - row.index * columns) }, (_, i) => {
                const at = row.index * columns + i;
                return cell(at, { tabIndex: at === focus ? 0 : -1, "aria-colindex": i + 1, "data-at": at }, fast);
              })}
            </div>
          ))}
      </div>
    </div>
  );
}

function useWidth(box: React.RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    const inside = (): number => node.clientWidth - 2 * parseFloat(getComputedStyle(node).paddingLeft);
    const watch = new ResizeObserver(() => setWidth(inside()));
    watch.observe(node);
    return () => watch.disconnect();
  }, [box]);
  return width;
}

/** Bring the cell that the keys are on into sight, and focus it if the focus is in the grid. */
function useFocused(box: React.RefObject<HTMLDivElement | null>, focus: number, reveal: () => void): void {
  const before = useRef(focus);
  useEffect(() => {
    if (before.current === focus) return;
    before.current = focus;
    const inGrid = box.current?.contains(document.activeElement) ?? false;
    const find = (): HTMLElement | null => box.current?.querySelector(`[data-at="${focus}"]`) ?? null;
    reveal();
    if (!inGrid) return;
    find()?.focus({ preventScroll: true });
    requestAnimationFrame(() => requestAnimationFrame(() => find()?.focus({ preventScroll: true })));
  }, [box, focus, reveal]);
}
