/** Review of one picture and its suggested labels. */

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { getHeatMapUrl, getThumbnailUrl } from "../api/client";
import type { ItemSummary, ItemDetails } from "../api/types";
import type { DecisionState } from "../api/client";
import { formatCount, getFileName, formatNumber } from "../base/format";
import { LabelInput } from "../base/label-input";
import { updateSearchParams, openDialog, useSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { EmptyState, Icon, Link, ErrorMessage } from "../base/components";
import { decide, overlay, undo } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { useItemList } from "../gallery/item-lists";
import { siblingItems } from "../item/sibling-items";
import { fetchDetail, prefetch, useDetail, useDetails } from "../item/detail-cache";
import { Picture } from "../item/picture";
import { TagRowView } from "../item/tag-row-view";
import { type TagRow, buildTagRows } from "../item/tag-rows";
import { buildDecisions, recordDecision } from "../item/decision";
import { collectionVersion } from "../shell/collection";
import { notify } from "../base/notifications";
import { countPictures, describeProgress, findCard, listBurst, listSiblings, requireCard, selectCards } from "./bursts";
import type { Order } from "./page";
import { usePictureShortcuts } from "./shortcuts";

const PREFETCH_COUNT = 4;

export function PictureReview({ label, order }: { label: string; order: Order }): ReactNode {
  const params = useSearchParams();
  const version = useStore(collectionVersion);
  const { pages, state } = useItemList(
    {
      ...(label ? { label } : {}),
      label_state: "suggested",
      state: "present",
      sort: order === "best_probability" && label ? "probability" : order,
      descending: true,
    },
    version,
  );
  const id = Number(params.get("at")) || null;
  const cards = useMemo(() => selectCards(pages.items), [pages, state.loadedCount]); // eslint-disable-line react-hooks/exhaustive-deps
  const foundPosition = id === null ? 0 : findCard(cards, id);
  const details = useDetails();
  const position = findOpenItem(cards, Math.max(0, foundPosition), 1, details) ?? Math.max(0, foundPosition);
  const showPicture = (target: number): void => {
    const item = cards[target];
    if (item) updateSearchParams({ at: item.id }, { replace: true });
  };
  useEffect(() => {
    requireCard(pages, cards, position + 2 * PREFETCH_COUNT);
    for (const card of cards.slice(position, position + PREFETCH_COUNT + 1)) prefetch(card);
  }, [pages, cards, position]);
  useEffect(() => siblingItems.set(listSiblings(cards, pages.items)), [pages, cards]);

  const item = cards[position];
  if (state.error && !item) return <ErrorMessage error={state.error} onRetry={pages.retry} />;
  if (state.isComplete && findOpenItem(cards, 0, 1, details) === null) return <NothingOpen label={label} />;
  if (!item) return <div className="review-item" aria-busy="true" />;
  return (
    <ReviewedPicture
      item={item}
      progress={describeProgress(pages.items, item, countPictures(pages.items, state))}
      onNext={() => {
        const next = findOpenItem(cards, position + 1, 1, details);
        if (next === null) notify("That was the last one.");
        else showPicture(next);
      }}
      onBack={() => showPicture(findOpenItem(cards, position - 1, -1, details) ?? position)}
      onUndo={() => {
        const undoneItem = undo();
        const undonePosition = undoneItem === null ? -1 : findCard(cards, undoneItem);
        if (undonePosition >= 0 && undonePosition !== position) showPicture(undonePosition);
      }}
    />
  );
}

/** Find the next item that has suggestions or is not loaded yet. */
function findOpenItem(list: readonly ItemSummary[], start: number, step: 1 | -1, details: ReadonlyMap<number, ItemDetails>): number | null {
  for (let position = start; position >= 0 && position < list.length; position += step) {
    if (details.get(list[position]!.id)?.suggestions.length !== 0) return position;
  }
  return null;
}

function NothingOpen({ label }: { label: string }): ReactNode {
  return (
    <EmptyState title={label ? `Nothing is open for “${label}”` : "Nothing is open"}>
      <p>
        Everything that was suggested is decided. Have the model <Link address="/training">learn</Link> from it: new suggestions
        come here.
      </p>
    </EmptyState>
  );
}

interface ReviewedPictureProps {
  item: ItemSummary;
  progress: string;
  onNext: () => void;
  onBack: () => void;
  onUndo: () => void;
}

function ReviewedPicture({ item, progress, onNext, onBack, onUndo }: ReviewedPictureProps): ReactNode {
  const { item: detail, error } = useDetail(item.id);
  const [highlighted, setHighlighted] = useState<{ id: number; label: string } | null>(null);
  const highlightedLabel = highlighted?.id === item.id ? highlighted.label : null;
  return (
    <div className="review-item">
      <div className="review-picture">
        <Picture
          src={getThumbnailUrl(item, 1024)}
          name={getFileName(item.path)}
          ratio={item.width && item.height ? item.width / item.height : null}
          heatMap={highlightedLabel ? getHeatMapUrl(item.id, highlightedLabel) : null}
        />
        <p className="review-name">
          <span>{progress}</span>
          {item.burst.length > 0 && (
            <button type="button" className="link" onClick={() => openDialog("item", item.id)}>
              {formatNumber(item.burst.length)} alike
            </button>
          )}
          <button type="button" className="link" onClick={() => openDialog("item", item.id)}>
            {getFileName(item.path)}
          </button>
        </p>
      </div>
      {detail ? (
        <LabelDecisions
          key={item.id}
          detail={detail}
          onHighlight={(label) => setHighlighted(label ? { id: item.id, label } : null)}
          {...{ onNext, onBack, onUndo }}
        />
      ) : (
        <div className="review-side" aria-busy={!error}>
          {error && <ErrorMessage error={error} onRetry={() => void fetchDetail(item.id)} />}
        </div>
      )}
    </div>
  );
}

interface LabelDecisionsProps {
  detail: ItemDetails;
  onHighlight: (label: string | null) => void;
  onNext: () => void;
  onBack: () => void;
  onUndo: () => void;
}

function LabelDecisions({ detail, onHighlight, onNext, onBack, onUndo }: LabelDecisionsProps): ReactNode {
  const rows = sortSuggestedFirst(buildTagRows(detail, useStore(overlay)));
  const [position, setPosition] = useState(0);
  const [isPinned, setIsPinned] = useState(false);
  const [newLabel, setNewLabel] = useState("");
  const canWrite = useWritePermission();
  const field = useRef<HTMLDivElement>(null);
  const setDecision = (row: TagRow, state: DecisionState | null): void => recordDecision(listBurst(detail), row.label, state, row.state);
  const moveTo = (next: number): void => {
    const target = Math.max(0, Math.min(rows.length - 1, next));
    setPosition(target);
    if (isPinned) onHighlight(rows[target]?.label ?? null);
  };
  const toggleDecision = (target: number, state: DecisionState): void => {
    const row = rows[target];
    if (!row) return;
    setDecision(row, row.state === state ? null : state);
    moveTo(target + 1);
  };
  const openRows = rows.filter((row) => row.state === null);
  const rejectOpen = (): void => {
    decide(
      openRows.flatMap((row) => buildDecisions(listBurst(detail), row.label, "rejected", null)),
      `${formatCount(openRows.length, "label")} rejected`,
    );
    onNext();
  };
  usePictureShortcuts({
    decideAt: toggleDecision,
    decide: (state) => toggleDecision(position, state),
    step: (offset) => moveTo(position + offset),
    rejectOpen,
    showNext: onNext,
    showPrevious: onBack,
    addLabel: () => field.current?.querySelector("input")?.focus(),
    toggleHeatMap: () => {
      setIsPinned(!isPinned);
      onHighlight(isPinned ? null : (rows[position]?.label ?? null));
    },
    undo: onUndo,
  });
  return (
    <div className="review-side">
      <ul className="rows" aria-label="Labels">
        {rows.map((row, i) => (
          <TagRowView key={row.label} row={row} position={i} isCurrent={i === position} isNumbered onHighlight={onHighlight} onDecide={setDecision} />
        ))}
      </ul>
      {rows.length === 0 && <p className="quiet">Nothing is suggested for this picture.</p>}
      <div ref={field} hidden={!canWrite}>
        <LabelInput
          name="Add a label"
          placeholder="Add a label (t)"
          value={newLabel}
          onChange={setNewLabel}
          onPick={(label) => {
            recordDecision(listBurst(detail), label, "accepted");
            setNewLabel("");
          }}
          onEscape={() => (document.activeElement as HTMLElement | null)?.blur()}
          allowsNew
        />
      </div>
      <div className="review-actions">
        <button type="button" onClick={onBack} aria-label="Picture before">
          <Icon name="back" />
        </button>
        <button type="button" onClick={onUndo} disabled={!canWrite}>
          <Icon name="undo" /> Undo
        </button>
        <button type="button" onClick={rejectOpen} disabled={!openRows.length || !canWrite}>
          Reject rest
        </button>
        <button type="button" className="primary" onClick={onNext}>
          Next <Icon name="next" />
        </button>
      </div>
    </div>
  );
}

/** Put rows with a suggestion first; they keep their place after a decision. */
function sortSuggestedFirst(rows: TagRow[]): TagRow[] {
  return [...rows.filter((row) => row.suggestion), ...rows.filter((row) => !row.suggestion)];
}
