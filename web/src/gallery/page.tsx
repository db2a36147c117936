/** All pictures: filters, order, selection, tagging what is selected. */

import { memo, type MouseEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { type ItemQuery, getThumbnailUrl } from "../api/client";
import type { CollectionStatus, ItemSummary } from "../api/types";
import { formatCount, getFileName, formatNumber } from "../base/format";
import { updateSearchParams, openDialog, useSearchParams } from "../base/router";
import { EmptyState, Icon, Link, ErrorMessage } from "../base/components";
import { FilterField } from "../base/filter-field";
import { answerCount } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { areGuesses, formatSuggestion, GUESS_EXPLANATION } from "../item/guesses";
import { siblingItems } from "../item/sibling-items";
import { useStore } from "../base/store";
import { collectionVersion } from "../shell/collection";
import { FilterPanel } from "./filter-panel";
import { countFilters, buildItemQuery, NO_FILTERS, SORTS, isSuggestionList } from "./filters";
import { Grid } from "./grid";
import { useItemList } from "./item-lists";
import { selectByClick, selectAll, moveFocus, EMPTY_SELECTION, type Selection, toggleItem } from "./selection";
import { useGalleryShortcuts } from "./shortcuts";
import { TagBar } from "./tag-bar";

export function GalleryPage({ facts }: { facts: CollectionStatus | null }): ReactNode {
  const params = useSearchParams();
  const query = buildItemQuery(params);
  const { pages, state, key } = useItemList(query, `${useStore(collectionVersion)} ${useDecisionCount(query)}`);
  const [stored, setStored] = useState<{ key: string; selection: Selection }>({ key, selection: EMPTY_SELECTION });
  const [showsFilters, setShowsFilters] = useState(false);
  const filterInput = useRef<HTMLInputElement>(null);
  const selection = stored.key === key ? stored.selection : EMPTY_SELECTION;
  const canWrite = useWritePermission();
  const select = (next: Selection): void => setStored({ key, selection: next });
  const idAt = (position: number): number | undefined => pages.items[position]?.id;
  useEffect(() => siblingItems.set(pages.items), [pages]);

  const open = (position: number): void => {
    const id = idAt(position);
    if (id !== undefined) openDialog("item", id);
  };
  const actions = useStableActions({
    click: (position, event) => {
      const keys = { range: event.shiftKey, additive: event.ctrlKey || event.metaKey };
      if (keys.range || keys.additive) select(selectByClick(selection, position, idAt, keys));
      else open(position);
    },
    toggle: (position) => select(toggleItem(selection, position, idAt)),
  });
  const handleKey = useGalleryShortcuts({
    focusFilter: () => filterInput.current?.focus(),
    toggleFilters: () => setShowsFilters((isShown) => !isShown),
    toggle: () => select(toggleItem(selection, selection.focus, idAt)),
    open: () => open(selection.focus),
    selectAll: () => select(selectAll(selection, pages.items.length, idAt)),
    selectNothing: () => select({ ...selection, ids: new Set() }),
  });

  return (
    <section className="page gallery" aria-label="Gallery">
      <Toolbar
        filterInput={filterInput}
        params={params}
        total={state.isComplete ? pages.items.length : state.total}
        loadedCount={state.loadedCount}
        showsFilters={showsFilters}
        onFilter={() => setShowsFilters((isShown) => !isShown)}
      />
      <div className="gallery-main">
        {showsFilters && <FilterPanel params={params} facts={facts} onClose={() => setShowsFilters(false)} />}
        <div className="gallery-list">
          {state.error && <ErrorMessage error={state.error} onRetry={pages.retry} />}
          {state.isComplete && pages.items.length === 0 ? (
            <EmptyGallery isFiltered={countFilters(params) > 0} />
          ) : (
            <Grid
              key={key}
              name="Pictures"
              scrollKey={key}
              length={pages.length}
              focus={selection.focus}
              minWidth={innerWidth < 720 ? 108 : 132}
              onMove={(target, extend) => {
                pages.require(target);
                select(moveFocus(selection, target, idAt, extend));
              }}
              onKey={handleKey}
              onVisible={(lastPosition) => pages.require(lastPosition)}
              renderCell={(position, props, isScrolling) => (
                <Tile
                  key={position}
                  position={position}
                  item={pages.items[position]}
                  column={props["aria-colindex"]}
                  tabIndex={props.tabIndex}
                  isSelected={selection.ids.has(idAt(position) ?? -1)}
                  isSelecting={selection.ids.size > 0}
                  isScrolling={isScrolling}
                  actions={actions}
                />
              )}
            />
          )}
        </div>
      </div>
      {selection.ids.size > 0 && canWrite && (
        <TagBar itemIds={selection.ids} onClear={() => select({ ...selection, ids: new Set() })} />
      )}
    </section>
  );
}

/** Return the number of decisions at the time the filters were set, if decisions affect them. */
function useDecisionCount(query: ItemQuery): number {
  const byTags = Boolean(query.label || query.unlabelled || query.no_tag_fits);
  const queryKey = byTags ? JSON.stringify(query) : "";
  const [snapshot, setSnapshot] = useState({ of: "", decisions: 0 });
  const current = snapshot.of === queryKey ? snapshot : { of: queryKey, decisions: byTags ? answerCount.get() : 0 };
  if (current !== snapshot) setSnapshot(current);
  return current.decisions;
}

interface ToolbarProps {
  filterInput: React.RefObject<HTMLInputElement | null>;
  params: URLSearchParams;
  total: number | null;
  loadedCount: number;
  showsFilters: boolean;
  onFilter: () => void;
}

function Toolbar({ filterInput, params, total, loadedCount, showsFilters, onFilter }: ToolbarProps): ReactNode {
  const filterCount = countFilters(params);
  return (
    <div className="toolbar">
      <h1 className="count" aria-live="polite">
        {total === null ? (loadedCount ? `More than ${formatCount(loadedCount, "picture")}` : "Pictures") : formatCount(total, "picture")}
      </h1>
      <FilterField inputRef={filterInput} name="Filter by words" placeholder="File names" value={params.get("words") ?? ""} onFilter={(words) => updateSearchParams({ words })} />
      <button type="button" aria-expanded={showsFilters} onClick={onFilter}>
        <Icon name="filter" /> Filters{filterCount > 0 ? ` (${filterCount})` : ""}
      </button>
      <label className="field-inline">
        <span>Order</span>
        <select
          aria-label="Order"
          value={params.get("sort") ?? "path"}
          onChange={(e) => {
            updateSearchParams({ sort: e.target.value, order: null });
            if (!e.target.matches(":focus-visible")) e.target.blur(); // after a click, keys are for the pictures
          }}
        >
          {SORTS.filter((s) => s.value !== "probability" || isSuggestionList(params)).map((s) => (
            <option key={s.value} value={s.value}>
              {s.name}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        className="plain"
        aria-pressed={params.get("order") === "other"}
        aria-label="Reverse the order"
        title="Reverse the order"
        onClick={() => updateSearchParams({ order: params.get("order") === "other" ? null : "other" })}
      >
        ⇅
      </button>
    </div>
  );
}

function EmptyGallery({ isFiltered }: { isFiltered: boolean }): ReactNode {
  if (!isFiltered) {
    return (
      <EmptyState title="No pictures yet">
        <p>
          Put pictures into the collection’s folder, then <Link address="/status">look for them</Link>.
        </p>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No picture matches">
      <button type="button" onClick={() => updateSearchParams(NO_FILTERS)}>
        Clear all filters
      </button>
    </EmptyState>
  );
}

interface TileActions {
  click: (position: number, event: MouseEvent) => void;
  toggle: (position: number) => void;
}

/** Return stable callbacks to the latest actions, so that tiles do not render again. */
function useStableActions(actions: TileActions): TileActions {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  return useMemo(
    () => ({ click: (position, event) => latest.current.click(position, event), toggle: (position) => latest.current.toggle(position) }),
    [],
  );
}

interface TileProps {
  position: number;
  item: ItemSummary | undefined;
  column: number;
  tabIndex: number;
  isSelected: boolean;
  isSelecting: boolean;
  isScrolling: boolean;
  actions: TileActions;
}

/** During fast scrolling no picture is loaded; the visible ones would wait behind all others. */
const Tile = memo(function Tile({ position, item, column, tabIndex, isSelected, isSelecting, isScrolling, actions }: TileProps): ReactNode {
  const [wasVisible, setWasVisible] = useState(!isScrolling);
  const [isBroken, setIsBroken] = useState(false);
  if (!isScrolling && !wasVisible) setWasVisible(true);
  const isGuess = useStore(areGuesses);
  const probability = item?.probability != null ? formatSuggestion(item.probability, isGuess) : "";
  const label = item ? `${getFileName(item.path)} ${probability}`.trim() : `picture ${formatNumber(position + 1)}, not loaded yet`;
  return (
    <div
      role="gridcell"
      className={`tile ${isSelected ? "selected" : ""} ${isSelecting ? "selecting" : ""}`}
      aria-selected={isSelected}
      aria-label={label}
      title={item?.path}
      tabIndex={tabIndex}
      aria-colindex={column}
      data-at={position}
      onClick={(event) => actions.click(position, event)}
    >
      {item?.state === "present" && wasVisible && (
        <img
          src={getThumbnailUrl(item, 256)}
          alt=""
          loading="lazy"
          decoding="async"
          draggable={false}
          onError={() => setIsBroken(true)}
          onLoad={() => setIsBroken(false)}
        />
      )}
      {item && (isBroken || item.state !== "present") && <span className="tile-note">{item.state === "present" ? "cannot be shown" : item.state}</span>}
      {probability && (
        <span className="tile-p" title={isGuess ? GUESS_EXPLANATION : undefined}>
          {probability}
        </span>
      )}
      {item && (
        <button
          type="button"
          className="check"
          tabIndex={-1}
          aria-label={isSelected ? `Unselect ${label}` : `Select ${label}`}
          onClick={(event) => {
            event.stopPropagation();
            actions.toggle(position);
          }}
        >
          <Icon name="accept" />
        </button>
      )}
    </div>
  );
});
