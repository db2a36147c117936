/** Search results, in groups with a reason each. */

import type { ReactNode } from "react";
import { getThumbnailUrl } from "../api/client";
import type { ScoredItem, ResultGroup } from "../api/types";
import { getFileName, formatNumber } from "../base/format";
import { updateSearchParams, openDialog } from "../base/router";
import { quoteLabel } from "./query-text";

const MAX_TITLE_LABELS = 8; // labels in the title of a group

export function ResultGroups({ groups }: { groups: ResultGroup[] }): ReactNode {
  return groups.map((group, i) => (
    <section key={`${i} ${group.labels.join()}`} className="group" aria-label={group.labels.join(", ")}>
      <header>
        <h2>
          {group.labels.slice(0, MAX_TITLE_LABELS).map((label) => (
            <button key={label} type="button" className="link" onClick={() => updateSearchParams({ text: quoteLabel(label) })}>
              {label}
            </button>
          ))}
          {group.labels.length > MAX_TITLE_LABELS && ` and ${formatNumber(group.labels.length - MAX_TITLE_LABELS)} more`}
        </h2>
        <p>{group.reason}</p>
      </header>
      <ResultGrid items={group.items} name={group.labels.join(", ")} />
    </section>
  ));
}

/** Grid of pictures under one `name`; a picture with another label shows it. */
export function ResultGrid({ items, name }: { items: ScoredItem[]; name: string }): ReactNode {
  return (
    <ul className="result-grid" aria-label={name}>
      {items.map((item) => (
        <li key={item.id}>
          <button type="button" className="tile" title={item.path} onClick={() => openDialog("item", item.id)}>
            <img src={getThumbnailUrl(item, 256)} alt={getFileName(item.path)} loading="lazy" decoding="async" />
            {item.label && item.label !== name && <span className="tile-label">{item.label}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
}
