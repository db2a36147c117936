/** Labels below labels; what is below one is asked for when it is opened. */

import { type KeyboardEvent, type ReactNode, useRef } from "react";
import { labelApi } from "../api/labels";
import type { LabelSummary } from "../api/types";
import { number } from "../base/format";
import { useLoad } from "../base/load";
import { ask } from "../base/router";
import { store, useStore } from "../base/store";
import { Empty, Icon, Link, Trouble } from "../base/ui";
import { collectionTurn } from "../shell/collection";
import { useLabelKeys } from "./keys";

const MOST = 500; // right below one label
const open = store<ReadonlySet<number>>(new Set());

function toggle(id: number, is?: boolean): void {
  open.set((old) => {
    const next = new Set(old);
    if (is ?? !old.has(id)) next.add(id);
    else next.delete(id);
    return next;
  });
}

function useBelow(id: number): ReturnType<typeof useLoad<{ total: number; labels: LabelSummary[] }>> {
  const turn = useStore(collectionTurn);
  return useLoad(`below ${id} ${turn}`, (signal) => labelApi.rows({ parent: id }, 0, MOST, signal));
}

export function LabelTree({ chosen }: { chosen: number | null }): ReactNode {
  const box = useRef<HTMLUListElement>(null);
  const top = useBelow(0);
  const lines = (): HTMLElement[] => [...(box.current?.querySelectorAll<HTMLElement>('[role="treeitem"]') ?? [])];
  const move = (by: number): void => {
    const all = lines();
    const focused = all.findIndex((line) => line === document.activeElement);
    const at = focused >= 0 ? focused : all.findIndex((line) => line.dataset["id"] === String(chosen));
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  };
  useLabelKeys((by) => {
    move(by);
    const id = (document.activeElement as HTMLElement | null)?.dataset["id"];
    if (id) ask({ label: id }, { replace: chosen !== null });
  });
  const heard = (event: KeyboardEvent<HTMLElement>): void => {
    const line = (event.target as HTMLElement).closest<HTMLElement>('[role="treeitem"]');
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = Number(line.dataset["id"]);
    const expanded = line.getAttribute("aria-expanded");
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Home") lines()[0]?.focus();
    else if (event.key === "End") lines().at(-1)?.focus();
    else if (event.key === "ArrowRight" && expanded === "false") toggle(id, true);
    else if (event.key === "ArrowRight" && expanded === "true") move(1);
    else if (event.key === "ArrowLeft" && expanded === "true") toggle(id, false);
    else if (event.key === "ArrowLeft") parentOf(lines(), line)?.focus();
    else if (event.key === "Enter" || event.key === " ") ask({ label: id });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  if (top.error) return <Trouble error={top.error} again={top.again} />;
  if (top.value && !top.value.labels.length) {
    return (
      <Empty title="No label is below another yet">
        <p>
          Choose a label in the <Link to="/labels">list</Link> and say what is above it, or let{" "}
          <code>wsabie collection labels FOLDER fill --knowledge /usr/share/wordnet</code> do so.
        </p>
      </Empty>
    );
  }
  return (
    <div className="label-list">
      <ul ref={box} className="label-tree" role="tree" aria-label="Labels below labels" onKeyDown={heard}>
        {top.value?.labels.map((row, i) => (
          <Branch key={row.id} row={row} depth={1} chosen={chosen} first={i === 0} />
        ))}
      </ul>
    </div>
  );
}

function Branch({ row, depth, chosen, first }: { row: LabelSummary; depth: number; chosen: number | null; first: boolean }): ReactNode {
  const expanded = useStore(open).has(row.id) && row.n_children > 0;
  return (
    <li role="none">
      <div
        role="treeitem"
        data-id={row.id}
        tabIndex={first ? 0 : -1}
        aria-level={depth}
        aria-selected={row.id === chosen}
        aria-expanded={row.n_children ? expanded : undefined}
        className={`tree-line ${row.id === chosen ? "chosen" : ""}`}
        style={{ paddingLeft: 8 + 18 * Math.min(depth - 1, 12) }}
        onClick={() => ask({ label: row.id })}
      >
        <span
          className={`tree-mark ${expanded ? "open" : ""}`}
          onClick={(event) => {
            event.stopPropagation();
            toggle(row.id);
          }}
        >
          {row.n_children > 0 && <Icon name="next" />}
        </span>
        <span className="label-name">{row.name}</span>
        {row.n_children > 0 && <small>{number(row.n_children)} below</small>}
        <span className="label-items">{number(row.items)}</span>
      </div>
      {expanded && <Below id={row.id} depth={depth + 1} chosen={chosen} />}
    </li>
  );
}

function parentOf(lines: HTMLElement[], line: HTMLElement): HTMLElement | undefined {
  const depth = Number(line.ariaLevel);
  return lines.slice(0, lines.indexOf(line)).findLast((one) => Number(one.ariaLevel) < depth);
}

function Below({ id, depth, chosen }: { id: number; depth: number; chosen: number | null }): ReactNode {
  const found = useBelow(id);
  if (found.error) return <Trouble error={found.error} again={found.again} />;
  if (!found.value) return null;
  const { labels, total } = found.value;
  return (
    <ul role="group">
      {labels.map((row) => (
        <Branch key={row.id} row={row} depth={depth} chosen={chosen} first={false} />
      ))}
      {total > labels.length && <li role="none">{number(total - labels.length)} more are in the list</li>}
    </ul>
  );
}
