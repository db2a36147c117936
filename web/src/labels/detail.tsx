/** One label: pictures, figures, names, neighbours, hierarchy, and forms to change it. */

import { type ReactNode, useEffect } from "react";
import { api, getThumbnailUrl } from "../api/client";
import { labelApi } from "../api/labels";
import type { LabelDetails, LabelNeighbour, LabelCount } from "../api/types";
import type { ItemSummary } from "../api/types";
import { formatCount, formatNumber, formatPercent } from "../base/format";
import { useLoad } from "../base/loading";
import { updateSearchParams, buildGalleryAddress, openDialog } from "../base/router";
import { useStore } from "../base/store";
import { Bar, Icon, Link, ErrorMessage } from "../base/components";
import { siblingItems } from "../item/sibling-items";
import { collectionVersion } from "../shell/collection";
import { DeleteForm } from "./delete";
import { EditForm, MergeForm, LabelNames, getEditableValues } from "./edit";
import { buildReviewAddress, formatLanguage } from "./messages";

const MAX_PICTURES = 12;

export function LabelDetail({ id, canWrite }: { id: number; canWrite: boolean }): ReactNode {
  const version = useStore(collectionVersion);
  const detail = useLoad(`label ${id} ${version}`, async (signal) => {
    const label = await labelApi.get(id, signal);
    const filters = { label: label.name, sort: "added_at", descending: true, k: MAX_PICTURES } as const; // its current name
    return { label, items: (await api.listItems(filters, signal)).items };
  });
  if (detail.error) {
    return (
      <div className="label-detail">
        <BackButton />
        <ErrorMessage error={detail.error} onRetry={detail.reload} />
      </div>
    );
  }
  if (!detail.value) return <div className="label-detail" aria-busy="true" />;
  const { label, items } = detail.value;
  return (
    <article className="label-detail" aria-label={label.name}>
      <BackButton />
      <header>
        {label.ancestors.length > 0 && (
          <p className="label-ancestors">
            {label.ancestors.toReversed().map((ancestor) => (
              <span key={ancestor.id}>
                <LabelLink label={ancestor} /> <span aria-hidden="true">›</span>{" "}
              </span>
            ))}
          </p>
        )}
        <h2>
          {label.name} {label.language && <small>{formatLanguage(label.language)}</small>}
        </h2>
      </header>
      <LabelPictures label={label} items={items} />
      <div className="label-cards">
        <div>
          <LabelFigures label={label} />
          <section className="card" aria-label="Hierarchy">
            <h3>Below it</h3>
            {label.child_labels.length ? <LabelChips labels={label.child_labels} /> : <p className="quiet">Nothing.</p>}
            {label.merge_exclusions.length > 0 && (
              <>
                <h3>Kept apart from</h3>
                <LabelChips labels={label.merge_exclusions} />
              </>
            )}
          </section>
        </div>
        <div>
          <Neighbours id={id} version={version} />
          {canWrite && <MergeForm label={label} />}
          {canWrite && <DeleteForm label={label} />}
        </div>
        <div>
          <LabelNames key={`names ${JSON.stringify(label.names)}`} label={label} canWrite={canWrite} />
          {canWrite && <EditForm key={`edit ${JSON.stringify(getEditableValues(label))}`} label={label} />}
        </div>
      </div>
    </article>
  );
}

function BackButton(): ReactNode {
  return (
    <button type="button" className="plain back-button" onClick={() => updateSearchParams({ label: null })}>
      <Icon name="back" /> All labels
    </button>
  );
}

function LabelLink({ label }: { label: LabelCount }): ReactNode {
  return (
    <button type="button" className="link" onClick={() => updateSearchParams({ label: label.id })}>
      {label.name}
    </button>
  );
}

function LabelChips({ labels }: { labels: LabelCount[] }): ReactNode {
  return (
    <div className="chips">
      {labels.map((chip) => (
        <button key={chip.id} type="button" className="chip" onClick={() => updateSearchParams({ label: chip.id })}>
          {chip.name} <small>{formatNumber(chip.items)}</small>
        </button>
      ))}
    </div>
  );
}

function LabelPictures({ label, items }: { label: LabelDetails; items: ItemSummary[] }): ReactNode {
  useEffect(() => siblingItems.set(items), [items]);
  return (
    <section aria-label="Pictures">
      <p className="links">
        <Link address={buildGalleryAddress(label.name)}>
          {label.items ? `All ${formatCount(label.items, "picture")} in the gallery` : "In the gallery"}
        </Link>
        {label.open_suggestions > 0 && <Link address={buildReviewAddress(label.name)}>Review {formatCount(label.open_suggestions, "suggestion")}</Link>}
      </p>
      <ul className="label-pictures" aria-label={`Pictures of ${label.name}`}>
        {items.map((item) => (
          <li key={item.id}>
            <button type="button" className="tile" title={item.path} onClick={() => openDialog("item", item.id)}>
              <img src={getThumbnailUrl(item, 256)} alt={item.path} loading="lazy" decoding="async" />
            </button>
          </li>
        ))}
        {items.length === 0 && <li className="quiet">No picture has it.</li>}
      </ul>
    </section>
  );
}

function LabelFigures({ label }: { label: LabelDetails }): ReactNode {
  const { evaluation } = label;
  return (
    <section className="card" aria-label="Figures">
      <h3>Figures</h3>
      <dl className="facts wide-facts">
        <Fact name="Pictures" text={formatNumber(label.items)} />
        <Fact name="Rejected" text={formatNumber(label.rejected)} />
        <Fact name="Suggested, open" text={formatNumber(label.open_suggestions)} />
        <Fact name="Right by people" text={formatShare(label.accepted_suggestions, label.reviewed_suggestions, "none decided yet")} />
        {evaluation && <Fact name="Right on held-out" text={evaluation.is_trained ? formatShare(evaluation.correct, evaluation.suggestions, "none suggested") : "the model does not know it"} />}
        {evaluation?.thresholds.map((limit) => (
          <Fact
            key={limit.precision}
            name={`${formatPercent(limit.precision)} right`}
            text={limit.probability === null ? "not reached; more tags help" : `from ${formatPercent(limit.probability)}${limit.is_label_specific ? "" : ", as all labels"}`}
          />
        ))}
        {label.wordnet && <Fact name="Meaning" text={label.wordnet} />}
      </dl>
    </section>
  );
}

function Fact({ name, text }: { name: string; text: string }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

function formatShare(correct: number, total: number, emptyText: string): string {
  return total ? `${formatPercent(correct / total)} of ${formatCount(total, "suggestion")}` : emptyText;
}

function Neighbours({ id, version }: { id: number; version: number }): ReactNode {
  const neighbours = useLoad(`near ${id} ${version}`, (signal) => labelApi.listNeighbours(id, 8, signal));
  const labels = neighbours.value?.neighbours;
  return (
    <section className="card" aria-label="Neighbours" aria-busy={!labels && !neighbours.error}>
      <h3>Near in the model’s space</h3>
      {neighbours.error && <ErrorMessage error={neighbours.error} />}
      {labels?.length === 0 && <p className="quiet">The model in use does not know this label.</p>}
      <ul className="label-neighbours">
        {labels?.map((neighbour) => (
          <NeighbourRow key={neighbour.id} neighbour={neighbour} />
        ))}
      </ul>
    </section>
  );
}

function NeighbourRow({ neighbour }: { neighbour: LabelNeighbour }): ReactNode {
  const [picture] = neighbour.pictures;
  return (
    <li>
      {picture ? <img src={getThumbnailUrl(picture, 256)} alt="" loading="lazy" decoding="async" /> : <span />}
      <LabelLink label={neighbour} />
      <small>{formatNumber(neighbour.items)}</small>
      <span className="neighbour-cosine" title="Cosine">
        <Bar value={Math.max(0, neighbour.cosine)} />
        {neighbour.cosine.toFixed(2)}
      </span>
    </li>
  );
}
