/** Which projection is looked at, and the job that makes the slow one. */

import type { ReactNode } from "react";
import type { MapStatus } from "../api/types";
import type { MapMethod } from "../api/client";
import { count, percent } from "../base/format";
import { ask } from "../base/router";
import { startJob, underWay, useJobs } from "../status/jobs";

const NAMES: Record<MapMethod, string> = { pca: "PCA", umap: "UMAP" };

export function Projections({ about, allowed }: { about: MapStatus; allowed: boolean }): ReactNode {
  const working = useJobs().some((job) => job.kind === "map" && underWay(job));
  const umap = about.projections.find((one) => one.method === "umap");
  const there = umap?.state === "ready" || umap?.state === "stale";
  return (
    <div className="map-projections">
      <div className="segments" role="group" aria-label="Projection">
        {(["pca", "umap"] as const).map((method) => (
          <button
            key={method}
            type="button"
            aria-pressed={about.method === method}
            disabled={method === "umap" && !there}
            title={titleOf(method, about)}
            onClick={() => ask({ by: method === "umap" ? "umap" : null })}
          >
            {NAMES[method]}
          </button>
        ))}
      </div>
      {umap && umap.state !== "ready" && umap.state !== "not installed" && allowed && (
        <button
          type="button"
          disabled={working}
          title="It keeps like with like better, and takes minutes for 100,000 pictures"
          onClick={() => void startJob("map")}
        >
          {working ? "Drawing…" : umap.state === "stale" ? `Draw anew (${count(umap.new_items, "new picture")})` : "Draw by UMAP"}
        </button>
      )}
    </div>
  );
}

function titleOf(method: MapMethod, about: MapStatus): string {
  if (method === "pca") {
    const share = about.share === null ? "" : `; they hold ${percent(about.share)} of what tells pictures apart`;
    return `Principal components: the two directions in which pictures differ most${share}`;
  }
  const state = about.projections.find((one) => one.method === "umap")?.state;
  if (state === "not installed") return "UMAP is not installed: pip install 'wsabie[map]'";
  return "UMAP: pictures that are alike lie together; distances between groups mean little";
}
