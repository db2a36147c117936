/** All labels, of which only those in sight exist. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { labelApi, type RowQuery } from "../api/labels";
import type { LabelSummary } from "../api/types";
import { count, number } from "../base/format";
import { Pages, type PagesState } from "../base/pages";
import { ask } from "../base/router";
import { useStore } from "../base/store";
import { Trouble } from "../base/ui";
import { target } from "../gallery/selection";
import { collectionTurn } from "../shell/collection";
import { useLabelKeys } from "./keys";
import { accuracy, spoken } from "./words";

const HEIGHT = 44;

export function LabelList({ chosen, asked }: { chosen: number | null; asked: URLSearchParams }): ReactNode {
  const query: RowQuery = { contains: asked.get("words") ?? "", order: (asked.get("order") ?? "items") as NonNullable<RowQuery["order"]> };
  const { rows, state, key } = useRows(query, useStore(collectionTurn));
  const box = useRef<HTMLDivElement>(null);
  const length = state.total ?? 0;
  const virtual = useVirtualizer({
    count: length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    overscan: 10,
  });
  const seen = virtual.getVirtualItems();
  const [first, last] = [seen[0]?.index ?? 0, seen.at(-1)?.index ?? 0];
  useEffect(() => rows.need(last, first), [rows, first, last]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [key]);

  const to = (at: number): void => {
    const there = Math.max(0, Math.min(length - 1, at));
    const row = rows.items[there];
    if (!row) return;
    virtual.scrollToIndex(there);
    ask({ label: row.id }, { replace: chosen !== null });
  };
  const at = chosen === null ? -1 : rows.items.findIndex((row) => row?.id === chosen);
  useLabelKeys((by) => to(at + by));
  const heard = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / HEIGHT) - 1);
    const next = target(event.key, Math.max(at, 0), 1, length, page);
    if (next === null) return;
    event.preventDefault();
    to(at < 0 ? 0 : next);
  };
  return (
    <div className="label-list">
      <p className="label-count" aria-live="polite">
        {state.total === null ? "Labels" : count(state.total, "label")}
      </p>
      {state.error && <Trouble error={state.error} again={rows.refresh} />}
      <div
        ref={box}
        className="label-rows"
        role="listbox"
        aria-label="Labels"
        tabIndex={0}
        aria-busy={state.total === null}
        aria-activedescendant={at >= first && at <= last && at >= 0 ? `label-${chosen}` : undefined}
        onKeyDown={heard}
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {seen.map((part) => (
            <Row
              key={part.key}
              row={rows.items[part.index]}
              at={part.index}
              of={length}
              top={part.start}
              chosen={rows.items[part.index]?.id === chosen}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The labels of a question; asked again when `turn` changes. */
function useRows(asked: RowQuery, turn: number): { rows: Pages<LabelSummary>; state: PagesState; key: string } {
  const key = JSON.stringify(asked);
  const rows = useMemo(() => {
    const query = JSON.parse(key) as RowQuery;
    const load = async (cursor: string | null, k: number, signal: AbortSignal) => {
      const { total, labels } = await labelApi.rows(query, Number(cursor), k, signal);
      return { items: labels, next_cursor: null, total };
    };
    return new Pages<LabelSummary>(load, { at: String });
  }, [key]);
  const state = useSyncExternalStore(rows.subscribe, rows.get);
  useEffect(() => {
    rows.refresh();
    return () => rows.close();
  }, [rows, turn]);
  return { rows, state, key };
}

interface RowProps {
  row: LabelSummary | undefined;
  at: number;
  of: number;
  top: number;
  chosen: boolean;
}

function Row({ row, at, of, top, chosen }: RowProps): ReactNode {
  return (
    <div
      id={row && `label-${row.id}`}
      className={`label-row ${chosen ? "chosen" : ""}`}
      role="option"
      aria-selected={chosen}
      aria-posinset={at + 1}
      aria-setsize={of}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => row && ask({ label: row.id })}
    >
      <span className="label-name" title={row?.name}>
        {row?.name ?? "…"} {row?.language && <small title={spoken(row.language)}>{row.language}</small>}
      </span>
      <small className="label-right" title="Suggestions that people found right">
        {row && accuracy(row.accepted_suggestions, row.reviewed_suggestions)}
      </small>
      <span className="label-items" title="Pictures">
        {row && number(row.items)}
      </span>
    </div>
  );
}
