/** The collection as a map: every picture is a point near similar ones. */

import "./map.css";
import type { ReactNode } from "react";
import type { CollectionStatus } from "../api/types";
import type { MapMethod } from "../api/client";
import { useLoad } from "../base/loading";
import { updateSearchParams, useSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { EmptyState, Link, ErrorMessage } from "../base/components";
import { useWritePermission } from "../decisions/write-permission";
import { collectionVersion } from "../shell/collection";
import { loadMap } from "./data/map-loader";
import { MapChart } from "./view/map-chart";

interface PageProps {
  facts: CollectionStatus | null;
}

export function MapPage({ facts }: PageProps): ReactNode {
  const canWrite = useWritePermission();
  const params = useSearchParams();
  const method: MapMethod = params.get("by") === "umap" ? "umap" : "pca";
  const version = useStore(collectionVersion);
  const loadedMap = useLoad(`map ${method} ${version}`, (signal) => loadMap(method, signal));
  if (facts && !facts.model) return <NoModel />;
  const { error, value } = loadedMap;
  return (
    <section className="page map" aria-label="Map" aria-busy={!value}>
      <h1 className="sr">Map</h1>
      {error && <ErrorMessage error={error} onRetry={loadedMap.reload} />}
      {error && method === "umap" && (
        <p className="hint">
          <button type="button" className="link" onClick={() => updateSearchParams({ by: null })}>
            Look at the principal components
          </button>
        </p>
      )}
      {!error && value && (
        <MapChart
          key={value.mapStatus.version}
          mapStatus={value.mapStatus}
          points={value.points}
          canWrite={canWrite}
          label={params.get("label") ?? ""}
          onOutdated={loadedMap.reload}
        />
      )}
    </section>
  );
}

function NoModel(): ReactNode {
  return (
    <EmptyState title="There is no map yet">
      <p>
        Pictures lie where a model sees them. Tag some, then let it <Link address="/training">learn</Link>.
      </p>
    </EmptyState>
  );
}
