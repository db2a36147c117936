/** List of all labels; only visible rows are in the document. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { labelApi, type RowQuery } from "../api/labels";
import type { LabelSummary } from "../api/types";
import { formatCount, formatNumber } from "../base/format";
import { PagedList, type ListState } from "../base/paged-list";
import { updateSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { ErrorMessage } from "../base/components";
import { findTarget } from "../gallery/grid-keys";
import { collectionVersion } from "../shell/collection";
import { useLabelShortcuts } from "./shortcuts";
import { formatAccuracy, formatLanguage } from "./messages";

const ROW_HEIGHT = 44;

export function LabelList({ selectedId, params }: { selectedId: number | null; params: URLSearchParams }): ReactNode {
  const query: RowQuery = { contains: params.get("words") ?? "", order: (params.get("order") ?? "items") as NonNullable<RowQuery["order"]> };
  const { rows, state, key } = useRows(query, useStore(collectionVersion));
  const container = useRef<HTMLDivElement>(null);
  const length = state.total ?? 0;
  const virtualizer = useVirtualizer({
    count: length,
    getScrollElement: () => container.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
  });
  const visibleRows = virtualizer.getVirtualItems();
  const [firstVisible, lastVisible] = [visibleRows[0]?.index ?? 0, visibleRows.at(-1)?.index ?? 0];
  useEffect(() => rows.require(lastVisible, firstVisible), [rows, firstVisible, lastVisible]);
  useEffect(() => {
    if (container.current) container.current.scrollTop = 0;
  }, [key]);

  const moveTo = (position: number): void => {
    const target = Math.max(0, Math.min(length - 1, position));
    const row = rows.items[target];
    if (!row) return;
    virtualizer.scrollToIndex(target);
    updateSearchParams({ label: row.id }, { replace: selectedId !== null });
  };
  const position = selectedId === null ? -1 : rows.items.findIndex((row) => row?.id === selectedId);
  useLabelShortcuts((offset) => moveTo(position + offset));
  const handleKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pageRows = Math.max(1, Math.floor((container.current?.clientHeight ?? 0) / ROW_HEIGHT) - 1);
    const target = findTarget(event.key, Math.max(position, 0), 1, length, pageRows);
    if (target === null) return;
    event.preventDefault();
    moveTo(position < 0 ? 0 : target);
  };
  return (
    <div className="label-list">
      <p className="label-count" aria-live="polite">
        {state.total === null ? "Labels" : formatCount(state.total, "label")}
      </p>
      {state.error && <ErrorMessage error={state.error} onRetry={rows.refresh} />}
      <div
        ref={container}
        className="label-rows"
        role="listbox"
        aria-label="Labels"
        tabIndex={0}
        aria-busy={state.total === null}
        aria-activedescendant={position >= firstVisible && position <= lastVisible && position >= 0 ? `label-${selectedId}` : undefined}
        onKeyDown={handleKey}
      >
        <div role="presentation" style={{ height: virtualizer.getTotalSize(), position: "relative" }}>
          {visibleRows.map((virtualRow) => (
            <LabelListRow
              key={virtualRow.key}
              row={rows.items[virtualRow.index]}
              position={virtualRow.index}
              total={length}
              top={virtualRow.start}
              isSelected={rows.items[virtualRow.index]?.id === selectedId}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** Return the labels that match a query; a change of `version` reloads them. */
function useRows(filters: RowQuery, version: number): { rows: PagedList<LabelSummary>; state: ListState; key: string } {
  const key = JSON.stringify(filters);
  const rows = useMemo(() => {
    const query = JSON.parse(key) as RowQuery;
    const load = async (cursor: string | null, k: number, signal: AbortSignal) => {
      const { total, labels } = await labelApi.list(query, Number(cursor), k, signal);
      return { items: labels, next_cursor: null, total };
    };
    return new PagedList<LabelSummary>(load, { cursorAt: String });
  }, [key]);
  const state = useSyncExternalStore(rows.subscribe, rows.get);
  useEffect(() => {
    rows.refresh();
    return () => rows.close();
  }, [rows, version]);
  return { rows, state, key };
}

interface LabelListRowProps {
  row: LabelSummary | undefined;
  position: number;
  total: number;
  top: number;
  isSelected: boolean;
}

function LabelListRow({ row, position, total, top, isSelected }: LabelListRowProps): ReactNode {
  return (
    <div
      id={row && `label-${row.id}`}
      className={`label-row ${isSelected ? "selected" : ""}`}
      role="option"
      aria-selected={isSelected}
      aria-posinset={position + 1}
      aria-setsize={total}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => row && updateSearchParams({ label: row.id })}
    >
      <span className="label-name" title={row?.name}>
        {row?.name ?? "…"} {row?.language && <small title={formatLanguage(row.language)}>{row.language}</small>}
      </span>
      <small className="label-accuracy" title="Suggestions that people found right">
        {row && formatAccuracy(row.accepted_suggestions, row.reviewed_suggestions)}
      </small>
      <span className="label-items" title="Pictures">
        {row && formatNumber(row.items)}
      </span>
    </div>
  );
}
