/** For which label, and accepting all that is surer than some probability. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus } from "../api/types";
import { count, percent } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad, useSettled } from "../base/load";
import { ask } from "../base/router";
import { useStore } from "../base/store";
import { Dialog, Trouble } from "../base/ui";
import { decideAbove, settledCount } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { limitsOf, usable } from "./limits";

interface Props {
  label: string;
  needed: boolean;
  thresholds: NonNullable<CollectionStatus["thresholds"]>;
}

export function LabelBar({ label, needed, thresholds }: Props): ReactNode {
  const [text, setText] = useState(label);
  const [open, setOpen] = useState(false);
  const writes = useMayWrite();
  return (
    <>
      <div className="label-bar">
        <LabelInput
          name="Label"
          placeholder={needed ? "Choose a label" : "All labels"}
          value={text}
          onChange={(next) => {
            setText(next);
            if (next === "" && label) ask({ label: null, item: null });
          }}
          onPick={(picked) => {
            setText(picked);
            ask({ label: picked, item: null });
          }}
        />
        <button type="button" disabled={!writes} onClick={() => setOpen(true)}>
          Accept all above …
        </button>
      </div>
      {open && <Above label={label} thresholds={thresholds} onClose={() => setOpen(false)} />}
    </>
  );
}

function Above({ label, thresholds, onClose }: { label: string; thresholds: Props["thresholds"]; onClose: () => void }): ReactNode {
  const own = useLoad(label ? `limits ${label}` : null, (signal) => limitsOf(label, signal));
  const limits = own.busy ? [] : (own.value ?? usable(thresholds));
  const [chosen, setP] = useState<number | null>(null);
  const p = chosen ?? inPercent(limits.at(-1)?.probability ?? 0.9);
  const settled = useSettled(p, 200);
  const done = useStore(settledCount);
  const found = useLoad(`above ${label} ${settled} ${done}`, (signal) =>
    api.countAbove(label, settled / 100, signal),
  );
  const total = settled === p && !found.busy && !own.busy ? (found.value?.count ?? null) : null;
  const what = label ? `“${label}”` : "every label";
  const told = total === null ? "…" : count(total, "suggestion");
  return (
    <Dialog title="Accept all above" className="small" onClose={onClose}>
      <p>
        All open suggestions of {what} with at least this probability are accepted. You can undo it with <kbd>z</kbd>.
      </p>
      <label className="field">
        <span>
          Probability: <strong>{p} %</strong>
        </span>
        <input type="range" min={1} max={100} value={p} onChange={(event) => setP(Number(event.target.value))} />
      </label>
      {limits.length > 0 && (
        <div className="chips">
          {limits.map((t) => (
            <button
              key={t.precision}
              type="button"
              className="chip"
              aria-pressed={inPercent(t.probability) === p}
              onClick={() => setP(inPercent(t.probability))}
            >
              {percent(t.precision)} right: from {percent(t.probability)}
            </button>
          ))}
        </div>
      )}
      {found.error && <Trouble error={found.error} again={found.again} />}
      <p className="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="primary"
          disabled={!total}
          aria-live="polite"
          onClick={() => {
            decideAbove(label || null, p / 100, `${told} of ${what} from ${p} %`);
            onClose();
          }}
        >
          Accept {told}
        </button>
      </p>
    </Dialog>
  );
}

/** The slider's step from which on nothing below a probability is taken. */
function inPercent(probability: number): number {
  return Math.max(1, Math.ceil(probability * 100));
}
