/** Deletion of a label and its tags, after a question. */

import { type ReactNode, useState } from "react";
import { labelApi } from "../api/labels";
import type { LabelDetails } from "../api/types";
import { updateSearchParams } from "../base/router";
import { Dialog } from "../base/components";
import { applyChange } from "./label-changes";
import { describeDeletion } from "./messages";

export function DeleteForm({ label }: { label: LabelDetails }): ReactNode {
  const [showsQuestion, setShowsQuestion] = useState(false);
  return (
    <section className="card label-delete" aria-label="Delete">
      <h3>Delete</h3>
      <p className="quiet">For labels that should not be there at all. One that means the same as another is merged.</p>
      <p>
        <button type="button" className="danger" onClick={() => setShowsQuestion(true)}>
          Delete label …
        </button>
      </p>
      {showsQuestion && <DeleteDialog label={label} onClose={() => setShowsQuestion(false)} />}
    </section>
  );
}

function DeleteDialog({ label, onClose }: { label: LabelDetails; onClose: () => void }): ReactNode {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const deleteLabel = async (): Promise<void> => {
    setIsBusy(true);
    const changeProblem = await applyChange(labelApi.remove(label.id), `Deleted “${label.name}”`, () =>
      updateSearchParams({ label: null }, { replace: true }),
    );
    setIsBusy(false);
    setProblem(changeProblem);
  };
  return (
    <Dialog title={`Delete “${label.name}”?`} className="small" onClose={onClose}>
      <p>
        {describeDeletion(label)}
        {label.child_labels.length > 0 && " Labels below it move up."}
      </p>
      <p>
        You can undo it with <kbd>z</kbd>, or later under Status.
      </p>
      {problem && (
        <p className="refused" role="alert">
          {problem}
        </p>
      )}
      <p className="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="danger full" disabled={isBusy} onClick={() => void deleteLabel()}>
          Delete label
        </button>
      </p>
    </Dialog>
  );
}
