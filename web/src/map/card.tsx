/** The picture of a point, with its labels. */

import type { ReactNode } from "react";
import { thumbnail } from "../api/client";
import { nameOf, percent } from "../base/format";
import { useSettled } from "../base/load";
import { useStore } from "../base/store";
import { overlay } from "../decisions/desk";
import { useDetail } from "../item/details";
import { tagRows } from "../item/tags";

export interface Pointed {
  id: number;
  x: number; // pixels from the corner of the map
  y: number;
  width: number; // of the map
  height: number;
}

const WIDE = 190;
const ASKED_AFTER = 60; // milliseconds, since a mouse crosses many points on its way

export function Card({ at, onOpen }: { at: Pointed; onOpen: () => void }): ReactNode {
  const settled = useSettled(at.id, ASKED_AFTER);
  const { item } = useDetail(settled === at.id ? at.id : null);
  const over = useStore(overlay);
  if (!item || item.id !== at.id) return null;
  const rows = tagRows(item, over).filter((row) => row.verdict !== "rejected");
  const left = at.x + 16 + WIDE > at.width ? at.x - 16 - WIDE : at.x + 16;
  const upright = at.y < at.height / 2 ? { top: Math.max(8, at.y - 60) } : { bottom: Math.max(8, at.height - at.y - 60) };
  return (
    <button type="button" className="map-card" style={{ left: Math.max(8, left), ...upright }} onClick={onOpen} tabIndex={-1}>
      {item.state === "present" && <img src={thumbnail(item, 256)} alt="" width={WIDE - 16} height={WIDE - 16} />}
      <strong>{nameOf(item.path)}</strong>
      <span className="map-tags">
        {rows.slice(0, 6).map((row) => (
          <span key={row.label} className={row.verdict ?? "open"}>
            {row.label}
            {!row.verdict && row.suggestion?.probability != null && <small> {percent(row.suggestion.probability)}</small>}
          </span>
        ))}
      </span>
    </button>
  );
}
