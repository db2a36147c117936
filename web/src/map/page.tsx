/** The collection as a map: every picture is a point, near to what the model finds like it. */

import "./map.css";
import type { ReactNode } from "react";
import type { CollectionStatus } from "../api/types";
import type { MapMethod } from "../api/client";
import { useLoad } from "../base/load";
import { ask, useAsked } from "../base/router";
import { useStore } from "../base/store";
import { Empty, Link, Trouble } from "../base/ui";
import { useMayWrite } from "../decisions/may";
import { collectionTurn } from "../shell/collection";
import { askMap } from "./asking";
import { Chart } from "./chart";

interface PageProps {
  facts: CollectionStatus | null;
}

export function MapPage({ facts }: PageProps): ReactNode {
  const writes = useMayWrite();
  const asked = useAsked();
  const method: MapMethod = asked.get("by") === "umap" ? "umap" : "pca";
  const turn = useStore(collectionTurn);
  const there = useLoad(`map ${method} ${turn}`, (signal) => askMap(method, signal));
  if (facts && !facts.model) return <NoModel />;
  const { error, value } = there;
  return (
    <section className="page map" aria-label="Map" aria-busy={!value}>
      <h1 className="sr">Map</h1>
      {error && <Trouble error={error} again={there.again} />}
      {error && method === "umap" && (
        <p className="hint">
          <button type="button" className="link" onClick={() => ask({ by: null })}>
            Look at the principal components
          </button>
        </p>
      )}
      {!error && value && (
        <Chart
          key={value.about.version}
          about={value.about}
          points={value.points}
          allowed={writes}
          label={asked.get("label") ?? ""}
          onAnother={there.again}
        />
      )}
    </section>
  );
}

function NoModel(): ReactNode {
  return (
    <Empty title="There is no map yet">
      <p>
        Pictures lie where a model sees them. Tag some, then let it <Link to="/training">learn</Link>.
      </p>
    </Empty>
  );
}
