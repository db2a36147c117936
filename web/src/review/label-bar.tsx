/** Choice of the label under review, and acceptance of all suggestions above a probability. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus } from "../api/types";
import { formatCount, formatPercent } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad, useDebounced } from "../base/loading";
import { updateSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { Dialog, ErrorMessage } from "../base/components";
import { acceptAbove, answerCount } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { fetchThresholds, selectReachable } from "./thresholds";

interface Props {
  label: string;
  isRequired: boolean;
  thresholds: NonNullable<CollectionStatus["thresholds"]>;
}

export function LabelBar({ label, isRequired, thresholds }: Props): ReactNode {
  const [text, setText] = useState(label);
  const [isOpen, setIsOpen] = useState(false);
  const canWrite = useWritePermission();
  return (
    <>
      <div className="label-bar">
        <LabelInput
          name="Label"
          placeholder={isRequired ? "Choose a label" : "All labels"}
          value={text}
          onChange={(next) => {
            setText(next);
            if (next === "" && label) updateSearchParams({ label: null, item: null });
          }}
          onPick={(name) => {
            setText(name);
            updateSearchParams({ label: name, item: null });
          }}
        />
        <button type="button" disabled={!canWrite} onClick={() => setIsOpen(true)}>
          Accept all above …
        </button>
      </div>
      {isOpen && <AcceptDialog label={label} thresholds={thresholds} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function AcceptDialog({ label, thresholds, onClose }: { label: string; thresholds: Props["thresholds"]; onClose: () => void }): ReactNode {
  const labelThresholds = useLoad(label ? `limits ${label}` : null, (signal) => fetchThresholds(label, signal));
  const selectable = labelThresholds.isLoading ? [] : (labelThresholds.value ?? selectReachable(thresholds));
  const [chosenPercent, setChosenPercent] = useState<number | null>(null);
  const percentage = chosenPercent ?? toPercent(selectable.at(-1)?.probability ?? 0.9);
  const debounced = useDebounced(percentage, 200);
  const answers = useStore(answerCount);
  const suggestions = useLoad(`above ${label} ${debounced} ${answers}`, (signal) =>
    api.countAbove(label, debounced / 100, signal),
  );
  const total = debounced === percentage && !suggestions.isLoading && !labelThresholds.isLoading ? (suggestions.value?.count ?? null) : null;
  const target = label ? `“${label}”` : "every label";
  const summary = total === null ? "…" : formatCount(total, "suggestion");
  return (
    <Dialog title="Accept all above" className="small" onClose={onClose}>
      <p>
        All open suggestions of {target} with at least this probability are accepted. You can undo it with <kbd>z</kbd>.
      </p>
      <label className="field">
        <span>
          Probability: <strong>{percentage} %</strong>
        </span>
        <input type="range" min={1} max={100} value={percentage} onChange={(event) => setChosenPercent(Number(event.target.value))} />
      </label>
      {selectable.length > 0 && (
        <div className="chips">
          {selectable.map((t) => (
            <button
              key={t.precision}
              type="button"
              className="chip"
              aria-pressed={toPercent(t.probability) === percentage}
              onClick={() => setChosenPercent(toPercent(t.probability))}
            >
              {formatPercent(t.precision)} right: from {formatPercent(t.probability)}
            </button>
          ))}
        </div>
      )}
      {suggestions.error && <ErrorMessage error={suggestions.error} onRetry={suggestions.reload} />}
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
            acceptAbove(label || null, percentage / 100, `${summary} of ${target} from ${percentage} %`);
            onClose();
          }}
        >
          Accept {summary}
        </button>
      </p>
    </Dialog>
  );
}

/** Round a probability up to a step of the slider, so that nothing below it is accepted. */
function toPercent(probability: number): number {
  return Math.max(1, Math.ceil(probability * 100));
}
