/** One label: its pictures, figures, names, what is near, above and below it, and changing it. */

import { type ReactNode, useEffect } from "react";
import { api, thumbnail } from "../api/client";
import { labelApi } from "../api/labels";
import type { LabelDetails, LabelNeighbour, LabelCount } from "../api/types";
import type { ItemSummary } from "../api/types";
import { count, number, percent } from "../base/format";
import { useLoad } from "../base/load";
import { ask, galleryOf, openOver } from "../base/router";
import { useStore } from "../base/store";
import { Bar, Icon, Link, Trouble } from "../base/ui";
import { listed } from "../item/listed";
import { collectionTurn } from "../shell/collection";
import { DeleteForm } from "./delete";
import { EditForm, MergeForm, Names, valuesOf } from "./edit";
import { reviewOf, spoken } from "./words";

const PICTURES = 12;

export function Detail({ id, mayWrite }: { id: number; mayWrite: boolean }): ReactNode {
  const turn = useStore(collectionTurn);
  const found = useLoad(`label ${id} ${turn}`, async (signal) => {
    const label = await labelApi.whole(id, signal);
    const asked = { label: label.name, sort: "added_at", descending: true, k: PICTURES } as const; // the name that it has now
    return { label, items: (await api.items(asked, signal)).items };
  });
  if (found.error) {
    return (
      <div className="label-detail">
        <BackToList />
        <Trouble error={found.error} again={found.again} />
      </div>
    );
  }
  if (!found.value) return <div className="label-detail" aria-busy="true" />;
  const { label, items } = found.value;
  return (
    <article className="label-detail" aria-label={label.name}>
      <BackToList />
      <header>
        {label.ancestors.length > 0 && (
          <p className="label-above">
            {label.ancestors.toReversed().map((one) => (
              <span key={one.id}>
                <Chosen label={one} /> <span aria-hidden="true">›</span>{" "}
              </span>
            ))}
          </p>
        )}
        <h2>
          {label.name} {label.language && <small>{spoken(label.language)}</small>}
        </h2>
      </header>
      <Pictures label={label} items={items} />
      <div className="label-cards">
        <div>
          <Figures label={label} />
          <section className="card" aria-label="Hierarchy">
            <h3>Below it</h3>
            {label.child_labels.length ? <Chips labels={label.child_labels} /> : <p className="quiet">Nothing.</p>}
            {label.merge_exclusions.length > 0 && (
              <>
                <h3>Kept apart from</h3>
                <Chips labels={label.merge_exclusions} />
              </>
            )}
          </section>
        </div>
        <div>
          <Neighbours id={id} turn={turn} />
          {mayWrite && <MergeForm label={label} />}
          {mayWrite && <DeleteForm label={label} />}
        </div>
        <div>
          <Names key={`names ${JSON.stringify(label.names)}`} label={label} mayWrite={mayWrite} />
          {mayWrite && <EditForm key={`edit ${JSON.stringify(valuesOf(label))}`} label={label} />}
        </div>
      </div>
    </article>
  );
}

function BackToList(): ReactNode {
  return (
    <button type="button" className="plain to-list" onClick={() => ask({ label: null })}>
      <Icon name="back" /> All labels
    </button>
  );
}

function Chosen({ label }: { label: LabelCount }): ReactNode {
  return (
    <button type="button" className="link" onClick={() => ask({ label: label.id })}>
      {label.name}
    </button>
  );
}

function Chips({ labels }: { labels: LabelCount[] }): ReactNode {
  return (
    <div className="chips">
      {labels.map((one) => (
        <button key={one.id} type="button" className="chip" onClick={() => ask({ label: one.id })}>
          {one.name} <small>{number(one.items)}</small>
        </button>
      ))}
    </div>
  );
}

function Pictures({ label, items }: { label: LabelDetails; items: ItemSummary[] }): ReactNode {
  useEffect(() => listed.set(items), [items]);
  return (
    <section aria-label="Pictures">
      <p className="links">
        <Link to={galleryOf(label.name)}>
          {label.items ? `All ${count(label.items, "picture")} in the gallery` : "In the gallery"}
        </Link>
        {label.open_suggestions > 0 && <Link to={reviewOf(label.name)}>Review {count(label.open_suggestions, "suggestion")}</Link>}
      </p>
      <ul className="label-pictures" aria-label={`Pictures of ${label.name}`}>
        {items.map((item) => (
          <li key={item.id}>
            <button type="button" className="tile" title={item.path} onClick={() => openOver("item", item.id)}>
              <img src={thumbnail(item, 256)} alt={item.path} loading="lazy" decoding="async" />
            </button>
          </li>
        ))}
        {items.length === 0 && <li className="quiet">No picture has it.</li>}
      </ul>
    </section>
  );
}

function Figures({ label }: { label: LabelDetails }): ReactNode {
  const { evaluation: held } = label;
  return (
    <section className="card" aria-label="Figures">
      <h3>Figures</h3>
      <dl className="facts wide-facts">
        <Fact name="Pictures" told={number(label.items)} />
        <Fact name="Rejected" told={number(label.rejected)} />
        <Fact name="Suggested, open" told={number(label.open_suggestions)} />
        <Fact name="Right by people" told={shareOf(label.accepted_suggestions, label.reviewed_suggestions, "none was decided")} />
        {held && <Fact name="Right on held-out" told={held.is_trained ? shareOf(held.correct, held.suggestions, "none was suggested") : "the model has not learnt it"} />}
        {held?.thresholds.map((limit) => (
          <Fact
            key={limit.precision}
            name={`${percent(limit.precision)} right`}
            told={limit.probability === null ? "not reached; more tags help" : `from ${percent(limit.probability)}${limit.is_label_specific ? "" : ", as all labels"}`}
          />
        ))}
        {label.wordnet && <Fact name="Meaning" told={label.wordnet} />}
      </dl>
    </section>
  );
}

function Fact({ name, told }: { name: string; told: string }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{told}</dd>
    </div>
  );
}

function shareOf(right: number, of: number, none: string): string {
  return of ? `${percent(right / of)} of ${count(of, "suggestion")}` : none;
}

function Neighbours({ id, turn }: { id: number; turn: number }): ReactNode {
  const found = useLoad(`near ${id} ${turn}`, (signal) => labelApi.near(id, 8, signal));
  const near = found.value?.neighbours;
  return (
    <section className="card" aria-label="Neighbours" aria-busy={!near && !found.error}>
      <h3>Near in the model’s space</h3>
      {found.error && <Trouble error={found.error} />}
      {near?.length === 0 && <p className="quiet">The model in use has not learnt this label.</p>}
      <ul className="near">
        {near?.map((one) => (
          <Neighbour key={one.id} near={one} />
        ))}
      </ul>
    </section>
  );
}

function Neighbour({ near }: { near: LabelNeighbour }): ReactNode {
  const [picture] = near.pictures;
  return (
    <li>
      {picture ? <img src={thumbnail(picture, 256)} alt="" loading="lazy" decoding="async" /> : <span />}
      <Chosen label={near} />
      <small>{number(near.items)}</small>
      <span className="near-cosine" title="Cosine">
        <Bar value={Math.max(0, near.cosine)} />
        {near.cosine.toFixed(2)}
      </span>
    </li>
  );
}
