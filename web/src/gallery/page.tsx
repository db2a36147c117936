/** All pictures: filters, order, selection, tagging what is selected. */

import { type KeyboardEvent, memo, type MouseEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { type ItemQuery, thumbnail } from "../api/client";
import type { CollectionStatus, ItemSummary } from "../api/types";
import { count, nameOf, number, percent } from "../base/format";
import { useKeys } from "../base/keys";
import { ask, openOver, useAsked } from "../base/router";
import { Empty, Icon, Link, Trouble } from "../base/ui";
import { WordsField } from "../base/words-field";
import { settledCount, undo } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { listed } from "../item/listed";
import { useStore } from "../base/store";
import { collectionTurn } from "../shell/collection";
import { Filters } from "./filter-panel";
import { filtersSet, itemQuery, NO_FILTERS, SORTS, suggestedOnly } from "./filters";
import { Grid } from "./grid";
import { useListing } from "./listing";
import { clicked, everything, moved, NOTHING, type Selection, toggled } from "./selection";
import { TagBar } from "./tag-bar";

export function GalleryPage({ facts }: { facts: CollectionStatus | null }): ReactNode {
  const asked = useAsked();
  const query = itemQuery(asked);
  const { pages, state, key } = useListing(query, `${useStore(collectionTurn)} ${useDecisionsBefore(query)}`);
  const [selected, setSelected] = useState<{ key: string; selection: Selection }>({ key, selection: NOTHING });
  const [filtering, setFiltering] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const selection = selected.key === key ? selected.selection : NOTHING;
  const writes = useMayWrite();
  const choose = (next: Selection): void => setSelected({ key, selection: next });
  const idAt = (at: number): number | undefined => pages.items[at]?.id;
  useEffect(() => listed.set(pages.items), [pages]);

  const open = (at: number): void => {
    const id = idAt(at);
    if (id !== undefined) openOver("item", id);
  };
  const does = useLatest({
    click: (at, event) => {
      const keys = { range: event.shiftKey, more: event.ctrlKey || event.metaKey };
      if (keys.range || keys.more) choose(clicked(selection, at, idAt, keys));
      else open(at);
    },
    check: (at) => choose(toggled(selection, at, idAt)),
  });
  const heard = (event: KeyboardEvent): void => {
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) choose(everything(selection, pages.items.length, idAt));
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === " " || event.key === "x") choose(toggled(selection, selection.focus, idAt));
    else if (event.key === "Enter") open(selection.focus);
    else return;
    event.preventDefault();
  };
  useKeys([
    { keys: ["/"], told: "Filter by words", run: () => field.current?.focus() },
    { keys: ["f"], told: "All filters", run: () => setFiltering((old) => !old) },
    { keys: ["Arrows"], told: "Move; with Shift select", run: () => undefined },
    { keys: ["x", "Space"], told: "Select or not", run: () => undefined },
    { keys: ["Enter"], told: "Open", run: () => undefined },
    { keys: ["Ctrl+A"], told: "Select all that are loaded", run: () => undefined },
    {
      keys: ["t"],
      told: "Tag what is selected",
      run: () => document.querySelector<HTMLInputElement>(".tag-bar input")?.focus(),
    },
    { keys: ["Escape"], told: "Select nothing", run: () => choose({ ...selection, chosen: new Set() }) },
    { keys: ["z"], told: "Undo", run: undo },
  ]);

  return (
    <section className="page gallery" aria-label="Gallery">
      <Toolbar
        field={field}
        asked={asked}
        total={state.ended ? pages.items.length : state.total}
        known={state.known}
        filtering={filtering}
        onFilter={() => setFiltering((old) => !old)}
      />
      <div className="gallery-main">
        {filtering && <Filters asked={asked} facts={facts} onClose={() => setFiltering(false)} />}
        <div className="gallery-list">
          {state.error && <Trouble error={state.error} again={pages.retry} />}
          {state.ended && pages.items.length === 0 ? (
            <NothingHere filtered={filtersSet(asked) > 0} />
          ) : (
            <Grid
              key={key}
              name="Pictures"
              place={key}
              length={pages.length}
              focus={selection.focus}
              smallest={innerWidth < 720 ? 108 : 132}
              onMove={(to, extend) => {
                pages.need(to);
                choose(moved(selection, to, idAt, extend));
              }}
              onKey={heard}
              onSeen={(last) => pages.need(last)}
              cell={(at, props, fast) => (
                <Tile
                  key={at}
                  at={at}
                  item={pages.items[at]}
                  column={props["aria-colindex"]}
                  tabIndex={props.tabIndex}
                  chosen={selection.chosen.has(idAt(at) ?? -1)}
                  choosing={selection.chosen.size > 0}
                  fast={fast}
                  does={does}
                />
              )}
            />
          )}
        </div>
      </div>
      {selection.chosen.size > 0 && writes && (
        <TagBar chosen={selection.chosen} onClear={() => choose({ ...selection, chosen: new Set() })} />
      )}
    </section>
  );
}

/** How much was decided when these filters were set, where that decides what passes them: they are asked again when they are set again. */
function useDecisionsBefore(query: ItemQuery): number {
  const byTags = Boolean(query.label || query.unlabelled || query.no_tag_fits);
  const of = byTags ? JSON.stringify(query) : "";
  const [before, setBefore] = useState({ of: "", decisions: 0 });
  const now = before.of === of ? before : { of, decisions: byTags ? settledCount.get() : 0 };
  if (now !== before) setBefore(now);
  return now.decisions;
}

interface ToolbarProps {
  field: React.RefObject<HTMLInputElement | null>;
  asked: URLSearchParams;
  total: number | null;
  known: number;
  filtering: boolean;
  onFilter: () => void;
}

function Toolbar({ field, asked, total, known, filtering, onFilter }: ToolbarProps): ReactNode {
  const set = filtersSet(asked);
  return (
    <div className="toolbar">
      <h1 className="count" aria-live="polite">
        {total === null ? (known ? `More than ${count(known, "picture")}` : "Pictures") : count(total, "picture")}
      </h1>
      <WordsField field={field} name="Filter by words" placeholder="Words in file names" value={asked.get("words") ?? ""} onWords={(words) => ask({ words })} />
      <button type="button" aria-expanded={filtering} onClick={onFilter}>
        <Icon name="filter" /> Filters{set > 0 ? ` (${set})` : ""}
      </button>
      <label className="field-inline">
        <span>Order</span>
        <select aria-label="Order" value={asked.get("sort") ?? "path"} onChange={(e) => ask({ sort: e.target.value, order: null })}>
          {SORTS.filter((s) => s.value !== "probability" || suggestedOnly(asked)).map((s) => (
            <option key={s.value} value={s.value}>
              {s.name}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        className="plain"
        aria-pressed={asked.get("order") === "other"}
        aria-label="Reverse the order"
        title="Reverse the order"
        onClick={() => ask({ order: asked.get("order") === "other" ? null : "other" })}
      >
        ⇅
      </button>
    </div>
  );
}

function NothingHere({ filtered }: { filtered: boolean }): ReactNode {
  if (!filtered) {
    return (
      <Empty title="No pictures yet">
        <p>
          Put pictures into the collection’s folder, then <Link to="/status">look for them</Link>.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No picture is like that">
      <button type="button" onClick={() => ask(NO_FILTERS)}>
        Clear all filters
      </button>
    </Empty>
  );
}

interface TileDoes {
  click: (at: number, event: MouseEvent) => void;
  check: (at: number) => void;
}

/** What the page does now, as something that stays the same: tiles need not be drawn again for it. */
function useLatest(now: TileDoes): TileDoes {
  const latest = useRef(now);
  useEffect(() => {
    latest.current = now;
  });
  return useMemo(
    () => ({ click: (at, event) => latest.current.click(at, event), check: (at) => latest.current.check(at) }),
    [],
  );
}

interface TileProps {
  at: number;
  item: ItemSummary | undefined;
  column: number;
  tabIndex: number;
  chosen: boolean;
  choosing: boolean;
  fast: boolean;
  does: TileDoes;
}

/** While tiles pass fast no picture is asked for: those that are seen at last would wait behind all of them. */
const Tile = memo(function Tile({ at, item, column, tabIndex, chosen, choosing, fast, does }: TileProps): ReactNode {
  const [seen, setSeen] = useState(!fast);
  const [broken, setBroken] = useState(false);
  if (!fast && !seen) setSeen(true);
  const sure = item?.probability != null ? ` ${percent(item.probability)}` : "";
  const label = item ? `${nameOf(item.path)}${sure}` : `picture ${number(at + 1)}, not loaded yet`;
  return (
    <div
      role="gridcell"
      className={`tile ${chosen ? "chosen" : ""} ${choosing ? "choosing" : ""}`}
      aria-selected={chosen}
      aria-label={label}
      title={item?.path}
      tabIndex={tabIndex}
      aria-colindex={column}
      data-at={at}
      onClick={(event) => does.click(at, event)}
    >
      {item?.state === "present" && seen && (
        <img
          src={thumbnail(item, 256)}
          alt=""
          loading="lazy"
          decoding="async"
          draggable={false}
          onError={() => setBroken(true)}
          onLoad={() => setBroken(false)}
        />
      )}
      {item && (broken || item.state !== "present") && <span className="tile-note">{item.state === "present" ? "cannot be shown" : item.state}</span>}
      {item?.probability != null && <span className="tile-p">{percent(item.probability)}</span>}
      {item && (
        <button
          type="button"
          className="check"
          tabIndex={-1}
          aria-label={chosen ? `Do not select ${label}` : `Select ${label}`}
          onClick={(event) => {
            event.stopPropagation();
            does.check(at);
          }}
        >
          <Icon name="accept" />
        </button>
      )}
    </div>
  );
});
