/** Pictures that were found, in groups that say why. */

import type { ReactNode } from "react";
import { thumbnail } from "../api/client";
import type { ScoredItem, ResultGroup } from "../api/types";
import { nameOf, number } from "../base/format";
import { ask, openOver } from "../base/router";
import { written } from "./terms";

const NAMED = 8; // labels of a group that stand above it

export function Groups({ groups }: { groups: ResultGroup[] }): ReactNode {
  return groups.map((group, i) => (
    <section key={`${i} ${group.labels.join()}`} className="group" aria-label={group.labels.join(", ")}>
      <header>
        <h2>
          {group.labels.slice(0, NAMED).map((label) => (
            <button key={label} type="button" className="link" onClick={() => ask({ text: written(label) })}>
              {label}
            </button>
          ))}
          {group.labels.length > NAMED && ` and ${number(group.labels.length - NAMED)} more`}
        </h2>
        <p>{group.reason}</p>
      </header>
      <Found items={group.items} name={group.labels.join(", ")} />
    </section>
  ));
}

/** `name` is what all have in common; a picture that was found for another label says which. */
export function Found({ items, name }: { items: ScoredItem[]; name: string }): ReactNode {
  return (
    <ul className="found-items" aria-label={name}>
      {items.map((item) => (
        <li key={item.id}>
          <button type="button" className="tile" title={item.path} onClick={() => openOver("item", item.id)}>
            <img src={thumbnail(item, 256)} alt={nameOf(item.path)} loading="lazy" decoding="async" />
            {item.label && item.label !== name && <span className="tile-label">{item.label}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
}
