/** Suggestions for a box on the picture, which can be accepted for the box alone. */

import { type ReactNode, useEffect, useRef } from "react";
import { api } from "../api/client";
import { formatPercent } from "../base/format";
import { useLoad, useDebounced } from "../base/loading";
import { useStore } from "../base/store";
import { Bar, Icon, ErrorMessage } from "../base/components";
import { decide, answerCount } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { notify } from "../base/notifications";
import { fetchDetail } from "./detail-cache";
import { areGuesses, GUESS, GUESS_EXPLANATION } from "./guesses";

export function RegionPanel({ item, region }: { item: number; region: string | null }): ReactNode {
  const canWrite = useWritePermission();
  const answers = useStore(answerCount);
  const isGuess = useStore(areGuesses);
  const hasTagged = useRef(false);
  useEffect(() => {
    if (hasTagged.current) void fetchDetail(item); // regions are shown as the service returns them
  }, [item, answers]);
  const debouncedRegion = useDebounced(region, 250);
  const annotation = useLoad(debouncedRegion && `region ${item} ${debouncedRegion}`, (signal) => api.annotateRegion(item, debouncedRegion!, 6, signal));
  const labels = annotation.value?.results[0]?.labels ?? [];
  return (
    <section aria-label="In the box" className="region-panel">
      <h3>In the box</h3>
      {!region && <p className="quiet">Draw a box on the picture, or move one with the arrow keys.</p>}
      {annotation.error && <ErrorMessage error={annotation.error} />}
      <ul className="rows">
        {labels.map((l) => (
          <li key={l.label} className="row">
            <span className="row-label">
              <span className="row-name">{l.label}</span>
              {isGuess && <small className="guess" title={GUESS_EXPLANATION}>{GUESS}</small>}
            </span>
            <span className="row-p">
              {l.probability !== null && (
                <>
                  <Bar value={l.probability} />
                  <span>{formatPercent(l.probability)}</span>
                </>
              )}
            </span>
            <button
              type="button"
              hidden={!canWrite}
              className="decision accept"
              aria-label={`Tag the box with ${l.label}`}
              onClick={() => {
                hasTagged.current = true;
                decide([{ item, label: l.label, state: "accepted", region: debouncedRegion! }], `“${l.label}” for a box`);
                notify(`The box is tagged ${l.label}. Press z to undo.`);
              }}
            >
              <Icon name="accept" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
