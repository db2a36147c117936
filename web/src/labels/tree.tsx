/** Tree of labels; children are loaded when a label is expanded. */

import { type KeyboardEvent, type ReactNode, useRef } from "react";
import { labelApi } from "../api/labels";
import type { LabelSummary } from "../api/types";
import { formatNumber } from "../base/format";
import { useLoad } from "../base/loading";
import { updateSearchParams } from "../base/router";
import { createStore, useStore } from "../base/store";
import { EmptyState, Icon, Link, ErrorMessage } from "../base/components";
import { collectionVersion } from "../shell/collection";
import { useLabelShortcuts } from "./shortcuts";

const MAX_CHILDREN = 500; // children of one label
const expandedIds = createStore<ReadonlySet<number>>(new Set());

function toggle(id: number, isExpanded?: boolean): void {
  expandedIds.set((current) => {
    const next = new Set(current);
    if (isExpanded ?? !current.has(id)) next.add(id);
    else next.delete(id);
    return next;
  });
}

function useChildren(id: number): ReturnType<typeof useLoad<{ total: number; labels: LabelSummary[] }>> {
  const version = useStore(collectionVersion);
  return useLoad(`below ${id} ${version}`, (signal) => labelApi.list({ parent: id }, 0, MAX_CHILDREN, signal));
}

export function LabelTree({ selectedId }: { selectedId: number | null }): ReactNode {
  const list = useRef<HTMLUListElement>(null);
  const roots = useChildren(0);
  const listLines = (): HTMLElement[] => [...(list.current?.querySelectorAll<HTMLElement>('[role="treeitem"]') ?? [])];
  const move = (offset: number): void => {
    const lines = listLines();
    const focusIndex = lines.findIndex((line) => line === document.activeElement);
    const index = focusIndex >= 0 ? focusIndex : lines.findIndex((line) => line.dataset["id"] === String(selectedId));
    lines[Math.max(0, Math.min(lines.length - 1, index + offset))]?.focus();
  };
  useLabelShortcuts((offset) => {
    move(offset);
    const id = (document.activeElement as HTMLElement | null)?.dataset["id"];
    if (id) updateSearchParams({ label: id }, { replace: selectedId !== null });
  });
  const handleKey = (event: KeyboardEvent<HTMLElement>): void => {
    const line = (event.target as HTMLElement).closest<HTMLElement>('[role="treeitem"]');
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = Number(line.dataset["id"]);
    const expansion = line.getAttribute("aria-expanded");
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Home") listLines()[0]?.focus();
    else if (event.key === "End") listLines().at(-1)?.focus();
    else if (event.key === "ArrowRight" && expansion === "false") toggle(id, true);
    else if (event.key === "ArrowRight" && expansion === "true") move(1);
    else if (event.key === "ArrowLeft" && expansion === "true") toggle(id, false);
    else if (event.key === "ArrowLeft") findParentLine(listLines(), line)?.focus();
    else if (event.key === "Enter" || event.key === " ") updateSearchParams({ label: id });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  if (roots.error) return <ErrorMessage error={roots.error} onRetry={roots.reload} />;
  if (roots.value && !roots.value.labels.length) {
    return (
      <EmptyState title="No label is below another yet">
        <p>
          Choose a label in the <Link address="/labels">list</Link> and say what is above it, or let{" "}
          <code>wsabie collection labels FOLDER fill --knowledge /usr/share/wordnet</code> do so.
        </p>
      </EmptyState>
    );
  }
  return (
    <div className="label-list">
      <ul ref={list} className="label-tree" role="tree" aria-label="Labels below labels" onKeyDown={handleKey}>
        {roots.value?.labels.map((row, i) => (
          <LabelBranch key={row.id} row={row} depth={1} selectedId={selectedId} isFirst={i === 0} />
        ))}
      </ul>
    </div>
  );
}

function LabelBranch({ row, depth, selectedId, isFirst }: { row: LabelSummary; depth: number; selectedId: number | null; isFirst: boolean }): ReactNode {
  const isExpanded = useStore(expandedIds).has(row.id) && row.n_children > 0;
  return (
    <li role="none">
      <div
        role="treeitem"
        data-id={row.id}
        tabIndex={isFirst ? 0 : -1}
        aria-level={depth}
        aria-selected={row.id === selectedId}
        aria-expanded={row.n_children ? isExpanded : undefined}
        className={`tree-line ${row.id === selectedId ? "selected" : ""}`}
        style={{ paddingLeft: 8 + 18 * Math.min(depth - 1, 12) }}
        onClick={() => updateSearchParams({ label: row.id })}
      >
        <span
          className={`tree-mark ${isExpanded ? "open" : ""}`}
          onClick={(event) => {
            event.stopPropagation();
            toggle(row.id);
          }}
        >
          {row.n_children > 0 && <Icon name="next" />}
        </span>
        <span className="label-name">{row.name}</span>
        {row.n_children > 0 && <small>{formatNumber(row.n_children)} below</small>}
        <span className="label-items">{formatNumber(row.items)}</span>
      </div>
      {isExpanded && <ChildLabels id={row.id} depth={depth + 1} selectedId={selectedId} />}
    </li>
  );
}

function findParentLine(listLines: HTMLElement[], line: HTMLElement): HTMLElement | undefined {
  const depth = Number(line.ariaLevel);
  return listLines.slice(0, listLines.indexOf(line)).findLast((candidate) => Number(candidate.ariaLevel) < depth);
}

function ChildLabels({ id, depth, selectedId }: { id: number; depth: number; selectedId: number | null }): ReactNode {
  const children = useChildren(id);
  if (children.error) return <ErrorMessage error={children.error} onRetry={children.reload} />;
  if (!children.value) return null;
  const { labels, total } = children.value;
  return (
    <ul role="group">
      {labels.map((row) => (
        <LabelBranch key={row.id} row={row} depth={depth} selectedId={selectedId} isFirst={false} />
      ))}
      {total > labels.length && <li role="none">{formatNumber(total - labels.length)} more are in the list</li>}
    </ul>
  );
}
