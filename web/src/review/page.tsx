/** Review of suggestions: one picture with all its labels, or a grid of pictures for one label. */

import { type ReactNode } from "react";
import { api } from "../api/client";
import { formatNumber } from "../base/format";
import { useLoad } from "../base/loading";
import { updateSearchParams, useSearchParams } from "../base/router";
import { EmptyState, Icon, Link } from "../base/components";
import type { CollectionStatus } from "../api/types";
import { LabelBar } from "./label-bar";
import { PictureReview } from "./picture-review";
import { LabelGrid } from "./label-grid";

export type Order = "uncertainty" | "best_probability";

export function ReviewPage({ facts }: { facts: CollectionStatus | null }): ReactNode {
  const params = useSearchParams();
  const isGrid = params.get("view") === "grid";
  const order: Order = params.get("order") === "best_probability" ? "best_probability" : "uncertainty";
  const label = params.get("label") ?? "";
  if (!facts) return <section className="page" aria-label="Review" aria-busy="true" />;
  if (!facts.model) return <NoModel />;
  return (
    <section className="page review" aria-label="Review">
      <div className="toolbar">
        <h1 className="sr">Review</h1>
        <div className="segments" role="group" aria-label="View">
          <button type="button" aria-pressed={!isGrid} onClick={() => updateSearchParams({ view: null, item: null })}>
            <Icon name="picture" /> One by one
          </button>
          <button type="button" aria-pressed={isGrid} onClick={() => updateSearchParams({ view: "grid", item: null })}>
            <Icon name="gallery" /> By label
          </button>
        </div>
        <div className="segments" role="group" aria-label="First come">
          <button type="button" aria-pressed={order === "uncertainty"} onClick={() => updateSearchParams({ order: null, item: null })}>
            Most doubtful
          </button>
          <button type="button" aria-pressed={order === "best_probability"} onClick={() => updateSearchParams({ order: "best_probability", item: null })}>
            Most probable
          </button>
        </div>
        <LabelBar key={label} label={label} isRequired={isGrid} thresholds={facts.thresholds ?? []} />
      </div>
      {facts.model.method === "zero-shot" && (
        <p className="notice quiet">The model knows only the names of the labels, so many suggestions are wrong until you train.</p>
      )}
      {isGrid && label === "" ? (
        <EmptyState title="Which label?">
          <p>This page then shows the pictures for which the model suggests it.</p>
          <SuggestedLabels />
        </EmptyState>
      ) : isGrid ? (
        <LabelGrid label={label} order={order} />
      ) : (
        <PictureReview label={label} order={order} />
      )}
    </section>
  );
}

/** The labels with most open suggestions. */
function SuggestedLabels(): ReactNode {
  const labels = useLoad("facets", api.getFacets).value?.labels ?? [];
  const frequentLabels = labels.filter((l) => l.open_suggestions > 0).sort((a, b) => b.open_suggestions - a.open_suggestions);
  return (
    <div className="chips center">
      {frequentLabels.slice(0, 24).map((l) => (
        <button key={l.id} type="button" className="chip" onClick={() => updateSearchParams({ label: l.name })}>
          {l.name} <small>{formatNumber(l.open_suggestions)}</small>
        </button>
      ))}
    </div>
  );
}

function NoModel(): ReactNode {
  return (
    <section className="page" aria-label="Review">
      <EmptyState title="Nothing is suggested yet">
        <p>
          Tag some pictures in the <Link address="/">gallery</Link>, then have the model <Link address="/training">learn</Link>{" "}
          from them: what it suggests is reviewed here.
        </p>
      </EmptyState>
    </section>
  );
}
