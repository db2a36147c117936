/** The map as text: lists of the visible labels and the selected pictures. */

import { type ReactNode, useEffect } from "react";
import { api, getThumbnailUrl } from "../../api/client";
import type { LabelPosition } from "../../api/types";
import { formatCount, getFileName, formatNumber } from "../../base/format";
import { useLoad } from "../../base/loading";
import { openDialog } from "../../base/router";
import { Icon } from "../../base/components";
import { siblingItems } from "../../item/sibling-items";

const MAX_LABELS = 40;
const MAX_PICTURES = 100;

interface Props {
  labels: readonly LabelPosition[];
  pointCount: number; // in sight
  selectedIds: ReadonlySet<number>;
  onLabel: (label: LabelPosition) => void;
  onClose: () => void;
}

export function TextView({ labels, pointCount, selectedIds, onLabel, onClose }: Props): ReactNode {
  const idList = [...selectedIds].slice(0, MAX_PICTURES).join(",");
  const selectedItems = useLoad(idList ? `numbers ${idList}` : null, (signal) => api.listItems({ ids: idList, k: MAX_PICTURES }, signal));
  const items = idList ? selectedItems.value?.items : undefined;
  useEffect(() => {
    if (items) siblingItems.set(items);
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
        {formatCount(pointCount, "picture")}; labels with most pictures:
      </p>
      <ul className="map-labels">
        {labels.slice(0, MAX_LABELS).map((label) => (
          <li key={label.id}>
            <button type="button" className="chip" onClick={() => onLabel(label)}>
              {label.name} <small>{formatNumber(label.accepted)}</small>
            </button>
          </li>
        ))}
      </ul>
      <h2>Selected</h2>
      {!selectedIds.size && <p className="quiet">Nothing yet: drag with Shift, or press a for all in sight.</p>}
      {selectedIds.size > MAX_PICTURES && <p className="quiet">The first {MAX_PICTURES} of {formatNumber(selectedIds.size)}</p>}
      <ul className="map-pictures">
        {(items ?? []).map((item) => (
          <li key={item.id}>
            <button type="button" className="strip-item" aria-label={`Open ${getFileName(item.path)}`} onClick={() => openDialog("item", item.id)}>
              <img src={getThumbnailUrl(item, 256)} alt="" loading="lazy" />
            </button>
          </li>
        ))}
      </ul>
    </aside>
  );
}
