/** What the model sees in a box, and tagging just that box. */

import { type ReactNode, useEffect, useRef } from "react";
import { api } from "../api/client";
import { percent } from "../base/format";
import { useLoad, useSettled } from "../base/load";
import { useStore } from "../base/store";
import { Bar, Icon, Trouble } from "../base/ui";
import { decide, settledCount } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { say } from "../base/saying";
import { fetchDetail } from "./details";

export function RegionPanel({ item, region }: { item: number; region: string | null }): ReactNode {
  const writes = useMayWrite();
  const settled = useStore(settledCount);
  const tagged = useRef(false);
  useEffect(() => {
    if (tagged.current) void fetchDetail(item); // what is said of parts of it is shown as the service has it
  }, [item, settled]);
  const asked = useSettled(region, 250);
  const found = useLoad(asked && `region ${item} ${asked}`, (signal) => api.annotateRegion(item, asked!, 6, signal));
  const labels = found.value?.results[0]?.labels ?? [];
  return (
    <section aria-label="In the box" className="region-panel">
      <h3>In the box</h3>
      {!region && <p className="quiet">Draw a box on the picture, or move one with the arrow keys.</p>}
      {found.error && <Trouble error={found.error} />}
      <ul className="rows">
        {labels.map((l) => (
          <li key={l.label} className="row">
            <span className="row-what">
              <span className="row-name">{l.label}</span>
            </span>
            <span className="row-p">
              {l.probability !== null && (
                <>
                  <Bar value={l.probability} />
                  <span>{percent(l.probability)}</span>
                </>
              )}
            </span>
            <button
              type="button"
              hidden={!writes}
              className="verdict accept"
              aria-label={`Tag the box with ${l.label}`}
              onClick={() => {
                tagged.current = true;
                decide([{ item, label: l.label, state: "accepted", region: asked! }], `“${l.label}” for a box`);
                say(`The box is tagged ${l.label}. Press z to undo.`);
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
