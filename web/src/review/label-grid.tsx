/** Grid of the pictures for which one label is suggested. */

import { type ReactNode, useEffect, useMemo, useState } from "react";
import { getHeatMapUrl, getThumbnailUrl } from "../api/client";
import type { ItemSummary } from "../api/types";
import type { DecisionState } from "../api/client";
import { formatCount, getFileName, formatNumber } from "../base/format";
import { openDialog } from "../base/router";
import { useStore } from "../base/store";
import { useDebounced } from "../base/loading";
import { EmptyState, Icon, ErrorMessage } from "../base/components";
import { decide, overlay } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { type CellProps, Grid } from "../gallery/grid";
import { useItemList } from "../gallery/item-lists";
import { buildDecisionKey } from "../item/decision-key";
import { areGuesses, formatSuggestion, GUESS_EXPLANATION } from "../item/guesses";
import { siblingItems } from "../item/sibling-items";
import { buildDecisions, recordDecision } from "../item/decision";
import { collectionVersion } from "../shell/collection";
import { countPictures, listBurst, listSiblings, requireCard, selectCards } from "./bursts";
import type { Order } from "./page";
import { useGridShortcuts } from "./shortcuts";

const BUTTON_HEIGHT = 46;

export function LabelGrid({ label, order }: { label: string; order: Order }): ReactNode {
  const version = useStore(collectionVersion);
  const { pages, state, key } = useItemList(
    {
      label,
      label_state: "suggested",
      state: "present",
      sort: order === "best_probability" ? "probability" : "uncertainty",
      descending: true,
    },
    version,
  );
  const [stored, setStored] = useState({ key, at: 0 });
  const focus = stored.key === key ? stored.at : 0;
  const decisions = useStore(overlay);
  const cards = useMemo(() => selectCards(pages.items), [pages, state.loadedCount]); // eslint-disable-line react-hooks/exhaustive-deps
  const length = pages.length - pages.items.length + cards.length;
  const count = countPictures(pages.items, state);
  useEffect(() => siblingItems.set(listSiblings(cards, pages.items)), [pages, cards]);
  const getDecision = (item: ItemSummary): DecisionState | null => decisions.get(buildDecisionKey(item.id, label)) ?? null;
  const moveTo = (position: number): void => {
    requireCard(pages, cards, position);
    setStored({ key, at: Math.max(0, Math.min(length - 1, position)) });
  };
  const toggleDecision = (position: number, state: DecisionState): void => {
    const item = cards[position];
    const previous = item && getDecision(item);
    if (item) recordDecision(listBurst(item), label, previous === state ? null : state, previous);
  };
  const openBefore = cards
    .slice(0, focus + 1)
    .filter((item) => getDecision(item) === null)
    .flatMap((item) => buildDecisions(listBurst(item), label, "accepted", null));
  const handleKey = useGridShortcuts({
    decide: (state) => {
      toggleDecision(focus, state);
      moveTo(focus + 1);
    },
    open: () => openDialog("item", cards[focus]?.id ?? 0),
    acceptAll: () => decide(openBefore, `“${label}” accepted for ${formatCount(openBefore.length, "picture")}`),
  });
  if (state.error && !pages.items.length) return <ErrorMessage error={state.error} onRetry={pages.retry} />;
  if (state.isComplete && !pages.items.length) {
    return (
      <EmptyState title={`Nothing is open for “${label}”`}>
        <p>Choose another label.</p>
      </EmptyState>
    );
  }
  return (
    <>
      <p className="hint" aria-live="polite">
        {count === null ? `${formatCount(pages.items.length, "picture")} and more` : formatCount(count, "picture")} · accept with <kbd>a</kbd>, reject with <kbd>r</kbd>, open
        with <kbd>Enter</kbd>
      </p>
      <Grid
        key={key}
        name={`Pictures for which ${label} is suggested`}
        scrollKey={key}
        length={length}
        focus={focus}
        minWidth={150}
        extraHeight={BUTTON_HEIGHT}
        onMove={moveTo}
        onKey={handleKey}
        onVisible={(lastPosition) => requireCard(pages, cards, lastPosition)}
        renderCell={(position, props) => {
          const item = cards[position];
          return (
            <SuggestedPicture
              key={position}
              item={item}
              label={label}
              state={item ? getDecision(item) : null}
              props={props}
              onFocus={() => setStored({ key, at: position })}
              onDecide={(state) => toggleDecision(position, state)}
            />
          );
        }}
      />
    </>
  );
}

interface SuggestedPictureProps {
  item: ItemSummary | undefined;
  label: string;
  state: DecisionState | null;
  props: CellProps;
  onFocus: () => void;
  onDecide: (state: DecisionState) => void;
}

function SuggestedPicture({ item, label, state, props, onFocus, onDecide }: SuggestedPictureProps): ReactNode {
  const [isHovered, setIsHovered] = useState(false);
  const debouncedHover = useDebounced(isHovered, 200);
  const canWrite = useWritePermission();
  const isGuess = useStore(areGuesses) && !state;
  const name = item ? getFileName(item.path) : `picture ${formatNumber(props["data-at"] + 1)}, not loaded yet`;
  const alikeCount = item?.burst.length ? `, ${formatNumber(item.burst.length)} alike` : "";
  return (
    <div
      role="gridcell"
      className={`suggestion ${state ?? ""}`}
      aria-label={`${name}${alikeCount}${item?.probability != null ? ` ${formatSuggestion(item.probability, isGuess)}` : ""}${state ? `, ${state}` : ""}`}
      onFocus={onFocus}
      onPointerEnter={(event) => setIsHovered(event.pointerType === "mouse")}
      onPointerLeave={() => setIsHovered(false)}
      {...props}
    >
      <div className={item?.burst.length ? "tile burst" : "tile"} title={item?.path} onClick={() => item && openDialog("item", item.id)}>
        {item && <img src={getThumbnailUrl(item, 256)} alt="" loading="lazy" decoding="async" draggable={false} />}
        {item && isHovered && debouncedHover && <img className="tile-heat" src={getHeatMapUrl(item.id, label)} alt="" />}
        {item && item.burst.length > 0 && <span className="tile-alike">{formatNumber(item.burst.length)} alike</span>}{" "}
        {item?.probability != null && (
          <span className="tile-p" title={isGuess ? GUESS_EXPLANATION : undefined}>
            {formatSuggestion(item.probability, isGuess)}
          </span>
        )}
      </div>
      {item && canWrite && (
        <div className="suggestion-buttons">
          <button
            type="button"
            tabIndex={-1}
            className="decision accept"
            aria-pressed={state === "accepted"}
            aria-label={`Accept ${label} for ${name}`}
            onClick={() => onDecide("accepted")}
          >
            <Icon name="accept" />
          </button>
          <button
            type="button"
            tabIndex={-1}
            className="decision reject"
            aria-pressed={state === "rejected"}
            aria-label={`Reject ${label} for ${name}`}
            onClick={() => onDecide("rejected")}
          >
            <Icon name="reject" />
          </button>
        </div>
      )}
    </div>
  );
}
