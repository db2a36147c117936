/** The map without looking at it: labels in sight, and what is selected, as lists. */

import { type ReactNode, useEffect } from "react";
import { api, thumbnail } from "../api/client";
import type { LabelPosition } from "../api/types";
import { count, nameOf, number } from "../base/format";
import { useLoad } from "../base/load";
import { openOver } from "../base/router";
import { Icon } from "../base/ui";
import { listed } from "../item/listed";

const LABELS = 40;
const PICTURES = 100;

interface Props {
  inSight: readonly LabelPosition[];
  points: number; // in sight
  chosen: ReadonlySet<number>;
  onLabel: (label: LabelPosition) => void;
  onClose: () => void;
}

export function InWords({ inSight, points, chosen, onLabel, onClose }: Props): ReactNode {
  const numbers = [...chosen].slice(0, PICTURES).join(",");
  const found = useLoad(numbers ? `numbers ${numbers}` : null, (signal) => api.items({ ids: numbers, k: PICTURES }, signal));
  const items = numbers ? found.value?.items : undefined;
  useEffect(() => {
    if (items) listed.set(items);
  }, [items]);
  return (
    <aside className="map-words" aria-label="The map in words">
      <header>
        <h2>In sight</h2>
        <button type="button" className="plain" aria-label="Close the list" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <p className="quiet">
        {count(points, "picture")}; labels with most pictures:
      </p>
      <ul className="map-labels">
        {inSight.slice(0, LABELS).map((label) => (
          <li key={label.id}>
            <button type="button" className="chip" onClick={() => onLabel(label)}>
              {label.name} <small>{number(label.accepted)}</small>
            </button>
          </li>
        ))}
      </ul>
      <h2>Selected</h2>
      {!chosen.size && <p className="quiet">Nothing yet: drag with Shift, or press a for all in sight.</p>}
      {chosen.size > PICTURES && <p className="quiet">The first {PICTURES} of {number(chosen.size)}</p>}
      <ul className="map-pictures">
        {(items ?? []).map((item) => (
          <li key={item.id}>
            <button type="button" className="strip-item" aria-label={`Open ${nameOf(item.path)}`} onClick={() => openOver("item", item.id)}>
              <img src={thumbnail(item, 256)} alt="" loading="lazy" />
            </button>
          </li>
        ))}
      </ul>
    </aside>
  );
}
