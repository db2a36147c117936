/** Going through what the model suggests: one picture with all its labels, or a grid of pictures for one label. */

import { type ReactNode } from "react";
import { api } from "../api/client";
import { number } from "../base/format";
import { useLoad } from "../base/load";
import { ask, useAsked } from "../base/router";
import { Empty, Icon, Link } from "../base/ui";
import type { CollectionStatus } from "../api/types";
import { LabelBar } from "./label-bar";
import { OneByOne } from "./one";
import { LabelGrid } from "./label-grid";

export type Order = "uncertainty" | "best_probability";

export function ReviewPage({ facts }: { facts: CollectionStatus | null }): ReactNode {
  const asked = useAsked();
  const grid = asked.get("view") === "grid";
  const order: Order = asked.get("order") === "best_probability" ? "best_probability" : "uncertainty";
  const label = asked.get("label") ?? "";
  if (!facts) return <section className="page" aria-label="Review" aria-busy="true" />;
  if (!facts.model) return <NoModel />;
  return (
    <section className="page review" aria-label="Review">
      <div className="toolbar">
        <h1 className="sr">Review</h1>
        <div className="segments" role="group" aria-label="View">
          <button type="button" aria-pressed={!grid} onClick={() => ask({ view: null, item: null })}>
            <Icon name="picture" /> One by one
          </button>
          <button type="button" aria-pressed={grid} onClick={() => ask({ view: "grid", item: null })}>
            <Icon name="gallery" /> By label
          </button>
        </div>
        <div className="segments" role="group" aria-label="First come">
          <button type="button" aria-pressed={order === "uncertainty"} onClick={() => ask({ order: null, item: null })}>
            Most doubtful
          </button>
          <button type="button" aria-pressed={order === "best_probability"} onClick={() => ask({ order: "best_probability", item: null })}>
            Surest
          </button>
        </div>
        <LabelBar key={label} label={label} needed={grid} thresholds={facts.thresholds ?? []} />
      </div>
      {grid && label === "" ? (
        <Empty title="Which label?">
          <p>The pictures for which it is suggested come as a grid.</p>
          <Suggested />
        </Empty>
      ) : grid ? (
        <LabelGrid label={label} order={order} />
      ) : (
        <OneByOne label={label} order={order} />
      )}
    </section>
  );
}

/** The labels that are suggested most. */
function Suggested(): ReactNode {
  const labels = useLoad("facets", api.facets).value?.labels ?? [];
  const most = labels.filter((l) => l.open_suggestions > 0).sort((a, b) => b.open_suggestions - a.open_suggestions);
  return (
    <div className="chips center">
      {most.slice(0, 24).map((l) => (
        <button key={l.id} type="button" className="chip" onClick={() => ask({ label: l.name })}>
          {l.name} <small>{number(l.open_suggestions)}</small>
        </button>
      ))}
    </div>
  );
}

function NoModel(): ReactNode {
  return (
    <section className="page" aria-label="Review">
      <Empty title="Nothing is suggested yet">
        <p>
          Tag some pictures in the <Link to="/">gallery</Link>, then have the model <Link to="/training">learn</Link>{" "}
          from them: what it suggests is reviewed here.
        </p>
      </Empty>
    </section>
  );
}
