/** Going through what the model suggests: one picture with all its labels, or a grid of pictures for one label. */

import { type ReactNode } from "react";
import { ask, useAsked } from "../base/router";
import { Empty, Icon, Link } from "../base/ui";
import type { CollectionFacts } from "../api/types";
import { LabelBar } from "./label-bar";
import { OneByOne } from "./one";
import { LabelGrid } from "./label-grid";

export type Order = "doubt" | "best";

export function ReviewPage({ facts }: { facts: CollectionFacts | null }): ReactNode {
  const asked = useAsked();
  const grid = asked.get("view") === "grid";
  const order: Order = asked.get("order") === "best" ? "best" : "doubt";
  const label = asked.get("label") ?? "";
  if (facts && !facts.model) return <NoModel />;
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
          <button type="button" aria-pressed={order === "doubt"} onClick={() => ask({ order: null, item: null })}>
            Teaches most
          </button>
          <button type="button" aria-pressed={order === "best"} onClick={() => ask({ order: "best", item: null })}>
            Surest
          </button>
        </div>
        <LabelBar key={label} label={label} needed={grid} thresholds={facts?.thresholds ?? []} />
      </div>
      {grid && label === "" ? (
        <Empty title="Which label?">
          <p>Choose one above: the pictures for which it is suggested come as a grid.</p>
        </Empty>
      ) : grid ? (
        <LabelGrid label={label} order={order} />
      ) : (
        <OneByOne label={label} order={order} />
      )}
    </section>
  );
}

function NoModel(): ReactNode {
  return (
    <section className="page" aria-label="Review">
      <Empty title="Nothing is suggested yet">
        <p>
          Tag some pictures in the <Link to="/">gallery</Link>, then have the model <Link to="/status">learn</Link>{" "}
          from them: what it suggests is reviewed here.
        </p>
      </Empty>
    </section>
  );
}
