/** Choice of the projection, and the job that computes UMAP. */

import type { ReactNode } from "react";
import type { MapStatus } from "../../api/types";
import type { MapMethod } from "../../api/client";
import { formatCount, formatPercent } from "../../base/format";
import { updateSearchParams } from "../../base/router";
import { startJob, isActive, useJobs } from "../../status/jobs";

const METHOD_NAMES: Record<MapMethod, string> = { pca: "PCA", umap: "UMAP" };

export function ProjectionChoice({ mapStatus, canWrite }: { mapStatus: MapStatus; canWrite: boolean }): ReactNode {
  const isDrawing = useJobs().some((job) => job.kind === "map" && isActive(job));
  const umap = mapStatus.projections.find((projection) => projection.method === "umap");
  const isReady = umap?.state === "ready" || umap?.state === "stale";
  return (
    <div className="map-projections">
      <div className="segments" role="group" aria-label="Projection">
        {(["pca", "umap"] as const).map((method) => (
          <button
            key={method}
            type="button"
            aria-pressed={mapStatus.method === method}
            disabled={method === "umap" && !isReady}
            title={buildTitle(method, mapStatus)}
            onClick={() => updateSearchParams({ by: method === "umap" ? "umap" : null })}
          >
            {METHOD_NAMES[method]}
          </button>
        ))}
      </div>
      {umap && umap.state !== "ready" && umap.state !== "not installed" && canWrite && (
        <button
          type="button"
          disabled={isDrawing}
          title="It separates groups of similar pictures better, and takes minutes for 100,000 pictures"
          onClick={() => void startJob("map")}
        >
          {isDrawing ? "Drawing…" : umap.state === "stale" ? `Draw again (${formatCount(umap.new_items, "new picture")})` : "Draw by UMAP"}
        </button>
      )}
    </div>
  );
}

function buildTitle(method: MapMethod, mapStatus: MapStatus): string {
  if (method === "pca") {
    const share = mapStatus.share === null ? "" : `; they hold ${formatPercent(mapStatus.share)} of what tells pictures apart`;
    return `Principal components: the two directions in which pictures differ most${share}`;
  }
  const state = mapStatus.projections.find((projection) => projection.method === "umap")?.state;
  if (state === "not installed") return "UMAP is not installed: pip install 'wsabie[map]'";
  return "UMAP: pictures that are alike lie together; distances between groups mean little";
}
