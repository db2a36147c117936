/** Deleting a label, with its tags, after a question. */

import { type ReactNode, useState } from "react";
import { labelApi } from "../api/labels";
import type { LabelDetails } from "../api/types";
import { ask } from "../base/router";
import { Dialog } from "../base/ui";
import { change } from "./work";
import { goesWith } from "./words";

export function DeleteForm({ label }: { label: LabelDetails }): ReactNode {
  const [asking, setAsking] = useState(false);
  return (
    <section className="card label-delete" aria-label="Delete">
      <h3>Delete</h3>
      <p className="quiet">For labels that should not be there at all. One that means the same as another is merged.</p>
      <p>
        <button type="button" className="danger" onClick={() => setAsking(true)}>
          Delete label …
        </button>
      </p>
      {asking && <Question label={label} onClose={() => setAsking(false)} />}
    </section>
  );
}

function Question({ label, onClose }: { label: LabelDetails; onClose: () => void }): ReactNode {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const done = async (): Promise<void> => {
    setBusy(true);
    const said = await change(labelApi.remove(label.id), `Deleted “${label.name}”`, () =>
      ask({ label: null }, { replace: true }),
    );
    setBusy(false);
    setRefused(said);
  };
  return (
    <Dialog title={`Delete “${label.name}”?`} className="small" onClose={onClose}>
      <p>
        {goesWith(label)}
        {label.child_labels.length > 0 && " Labels below it move up."}
      </p>
      <p>
        You can undo it with <kbd>z</kbd>, or later under Status.
      </p>
      {refused && (
        <p className="refused" role="alert">
          {refused}
        </p>
      )}
      <p className="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="danger full" disabled={busy} onClick={() => void done()}>
          Delete label
        </button>
      </p>
    </Dialog>
  );
}
