/** Card with the picture of a point and its labels. */

import type { ReactNode } from "react";
import { getThumbnailUrl } from "../../api/client";
import { getFileName } from "../../base/format";
import { useDebounced } from "../../base/loading";
import { useStore } from "../../base/store";
import { overlay } from "../../decisions/decision-history";
import { useDetail } from "../../item/detail-cache";
import { areGuesses, formatSuggestion } from "../../item/guesses";
import { buildTagRows } from "../../item/tag-rows";

export interface CardPosition {
  id: number;
  x: number; // pixels from the corner of the map
  y: number;
  width: number; // of the map
  height: number;
}

const CARD_WIDTH = 190;
const REQUEST_DELAY = 60; // milliseconds; a mouse crosses many points on its way

export function ItemCard({ position, onOpen }: { position: CardPosition; onOpen: () => void }): ReactNode {
  const debouncedId = useDebounced(position.id, REQUEST_DELAY);
  const { item } = useDetail(debouncedId === position.id ? position.id : null);
  const decisions = useStore(overlay);
  const isGuess = useStore(areGuesses);
  if (!item || item.id !== position.id) return null;
  const rows = buildTagRows(item, decisions).filter((row) => row.state !== "rejected");
  const left = position.x + 16 + CARD_WIDTH > position.width ? position.x - 16 - CARD_WIDTH : position.x + 16;
  const vertical = position.y < position.height / 2 ? { top: Math.max(8, position.y - 60) } : { bottom: Math.max(8, position.height - position.y - 60) };
  return (
    <button type="button" className="map-card" style={{ left: Math.max(8, left), ...vertical }} onClick={onOpen} tabIndex={-1}>
      {item.state === "present" && <img src={getThumbnailUrl(item, 256)} alt="" width={CARD_WIDTH - 16} height={CARD_WIDTH - 16} />}
      <strong>{getFileName(item.path)}</strong>
      <span className="map-tags">
        {rows.slice(0, 6).map((row) => (
          <span key={row.label} className={row.state ?? "open"}>
            {row.label}
            {!row.state && row.suggestion?.probability != null && <small> {formatSuggestion(row.suggestion.probability, isGuess)}</small>}
          </span>
        ))}
      </span>
    </button>
  );
}
