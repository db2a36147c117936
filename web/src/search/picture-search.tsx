/** Search by a picture, or by the part of it in a box that is drawn. */

import { type ReactNode, useEffect, useState } from "react";
import { api } from "../api/client";
import type { LabelScore } from "../api/types";
import { formatPercent } from "../base/format";
import { useLoad } from "../base/loading";
import { notify } from "../base/notifications";
import { updateSearchParams } from "../base/router";
import { createStore } from "../base/store";
import { ErrorMessage } from "../base/components";
import { type Box, formatRegion } from "../item/region-box";
import { siblingItems } from "../item/sibling-items";
import { Picture } from "../item/picture";
import { ResultGrid } from "./results";
import { quoteLabel } from "./query-text";

interface QueryPicture {
  file: File;
  src: string;
  key: number;
}

/** Survives a change of the page; a file cannot be part of an address. */
export const queryPicture = createStore<QueryPicture | null>(null);
let dropCount = 0;

export function searchWithFile(file: File | null | undefined): void {
  if (!file) return;
  if (!file.type.startsWith("image/")) {
    notify("This file is not a picture; choose a picture to search with.");
    return;
  }
  const previous = queryPicture.get();
  if (previous) URL.revokeObjectURL(previous.src);
  queryPicture.set({ file, src: URL.createObjectURL(file), key: (dropCount += 1) });
  updateSearchParams({ text: null, by: "picture" });
}

export function PictureResults({ picture }: { picture: QueryPicture }): ReactNode {
  const [box, setBox] = useState<Box | null>(null);
  const region = box ? formatRegion(box) : null;
  const results = useLoad(`picture ${picture.key} ${region}`, (signal) =>
    api.searchByPicture(picture.file, region, 48, signal),
  );
  const items = results.value?.items;
  useEffect(() => siblingItems.set(items ?? []), [items]);
  return (
    <div className="by-picture">
      <aside aria-label="The picture searched with">
        <Picture src={picture.src} name="The picture searched with" ratio={null} isDrawing box={box} onBox={setBox} />
        <p className="quiet">
          {box ? (
            <>
              Only the box counts.{" "}
              <button type="button" className="link" onClick={() => setBox(null)}>
                The whole picture
              </button>
            </>
          ) : (
            "Draw a box to search with a part of it."
          )}
        </p>
        <div className="chips">
          {selectMostProbable(results.value?.labels ?? []).map((l) => (
            <button key={l.label} type="button" className="chip" onClick={() => updateSearchParams({ text: quoteLabel(l.label), by: null })}>
              {l.label} {l.probability !== null && <small>{formatPercent(l.probability)}</small>}
            </button>
          ))}
        </div>
        <button
          type="button"
          onClick={() => {
            URL.revokeObjectURL(picture.src);
            queryPicture.set(null);
            updateSearchParams({ by: null });
          }}
        >
          Close
        </button>
      </aside>
      <div className={`search-results ${results.isLoading ? "stale" : ""}`} aria-busy={results.isLoading}>
        {results.error && <ErrorMessage error={results.error} onRetry={results.reload} />}
        {items && <ResultGrid items={items} name="Most like it" />}
      </div>
    </div>
  );
}

/** Select the eight most probable labels; the model sorts by score, which is another order. */
function selectMostProbable(labels: LabelScore[]): LabelScore[] {
  return labels.toSorted((a, b) => (b.probability ?? 0) - (a.probability ?? 0)).slice(0, 8);
}
