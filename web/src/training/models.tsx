/** The models of the collection: their training data, the one in use, and a switch to another. */

import type { ReactNode } from "react";
import { api } from "../api/client";
import type { ModelList, ModelSummary } from "../api/types";
import { formatAge, formatCount } from "../base/format";
import { updateSearchParams } from "../base/router";
import { recordChange, undoEntry } from "../decisions/decision-history";
import { refreshCollection } from "../shell/collection";
import { notify } from "../base/notifications";

interface Props {
  modelList: ModelList;
  shownId: number | null; // the model whose curve is shown
  selectedIds: readonly number[];
  canWrite: boolean;
}

export function ModelsCard({ modelList, shownId, selectedIds, canWrite }: Props): ReactNode {
  const { models, removed, rollback } = modelList;
  return (
    <section className="card" aria-label="Models">
      <header className="card-head">
        <h2>Models</h2>
        {rollback && (
          <button type="button" disabled={!canWrite} onClick={() => undoEntry(rollback.entry, describeUse(models), refreshCollection)}>
            Back to model {rollback.model}
          </button>
        )}
      </header>
      {models.length > 1 && <p className="quiet">Choose two to compare them on the pictures that neither learned from.</p>}
      <ul className="models">
        {models.map((model) => (
          <ModelLine
            key={model.id}
            model={model}
            isShown={model.id === shownId}
            isSelected={selectedIds.includes(model.id)}
            isFull={selectedIds.length > 1}
            isSingle={models.length < 2}
            canWrite={canWrite}
            onSelect={(isSelected) => selectModels(isSelected ? [...selectedIds, model.id] : selectedIds.filter((n) => n !== model.id))}
          />
        ))}
      </ul>
      {removed.length > 0 && <p className="quiet">Removed: {removed.map((n) => `model ${n}`).join(", ")}.</p>}
    </section>
  );
}

interface ModelLineProps {
  model: ModelSummary;
  isShown: boolean;
  isSelected: boolean;
  isFull: boolean; // two models are selected already
  isSingle: boolean;
  canWrite: boolean;
  onSelect: (yes: boolean) => void;
}

function ModelLine({ model, isShown, isSelected, isFull, isSingle, canWrite, onSelect }: ModelLineProps): ReactNode {
  const { facts, figures } = model;
  const name = `Model ${model.id}`;
  return (
    <li className="model">
      <label className="model-name">
        {!isSingle && (
          <input
            type="checkbox"
            aria-label={`Compare model ${model.id}`}
            checked={isSelected}
            disabled={!model.is_available || (isFull && !isSelected)}
            onChange={(event) => onSelect(event.target.checked)}
          />
        )}
        <strong>{name}</strong>
      </label>
      <span className="model-state">
        {!model.is_available ? (
          <span className="badge bad">files are gone</span>
        ) : model.in_use ? (
          <span className="badge good">in use</span>
        ) : (
          facts.rejection_reason && <span className="badge bad">not put into use</span>
        )}
      </span>
      <p className="model-description">
        {`${describeMethod(model)}, ${formatAge(model.created_at)}`}
        {facts.labels !== undefined && `: ${formatCount(facts.labels, "label")} from ${formatCount(facts.items ?? 0, "picture")}, by ${facts.features ?? ""}`}
        {facts.rejection_reason && (
          <small>
            Not put into use: {facts.rejection_reason}. {describePredecessor(model)} Use switches to it.
          </small>
        )}
      </p>
      <dl className="model-figures">
        {Object.entries(figures.metrics ?? {}).map(([figure, value]) => (
          <div key={figure}>
            <dt>{figure}</dt>
            <dd>{value.toFixed(3)}</dd>
          </div>
        ))}
      </dl>
      <span className="model-actions">
        <button type="button" aria-pressed={isShown} onClick={() => updateSearchParams({ model: model.id })}>
          Curve <span className="sr">of model {model.id}</span>
        </button>
        {!model.in_use && (
          <button type="button" disabled={!canWrite || !model.is_available} onClick={() => void activateModel(model.id)}>
            Use <span className="sr">model {model.id}</span>
          </button>
        )}
      </span>
    </li>
  );
}

function describeMethod(model: ModelSummary): string {
  if (model.method === "zero-shot") return "Knows only the names of labels";
  if (model.method === "full") return "Learned from everything";
  return model.parent === null ? "Learned from corrections" : `Learned from corrections of model ${model.parent}`;
}

/** Describe the model before on the held-out pictures of this one. */
function describePredecessor({ parent, figures }: ModelSummary): string {
  const metrics = Object.entries(figures.previous_metrics ?? {}).map(([name, value]) => `${name} ${value.toFixed(3)}`);
  return metrics.length ? `On the same ${formatCount(figures.items, "picture")}, model ${parent} has ${metrics.join(", ")}.` : "";
}

function selectModels(numbers: readonly number[]): void {
  updateSearchParams({ compare: [...numbers].sort((a, b) => a - b).join() });
}

/** Describe the change that a rollback undoes. */
function describeUse(models: readonly ModelSummary[]): string {
  return `the use of model ${models.find((model) => model.in_use)?.id ?? ""}`;
}

async function activateModel(id: number): Promise<void> {
  try {
    const { rollback, models: updatedModels } = await api.activateModel(id);
    if (rollback) recordChange(rollback.entry, describeUse(updatedModels), refreshCollection);
    notify(`Model ${id} is in use. Press z to undo.`);
  } catch (error) {
    notify((error as Error).message);
  } finally {
    refreshCollection();
  }
}
