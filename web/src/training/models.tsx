/** The models of the collection: what each was made of, which is in use, and another one instead. */

import type { ReactNode } from "react";
import { api } from "../api/client";
import type { ModelList, ModelSummary } from "../api/types";
import { ago, count } from "../base/format";
import { ask } from "../base/router";
import { remember, undoEntry } from "../decisions/desk";
import { collectionChanged } from "../shell/collection";
import { say } from "../base/saying";

interface Props {
  found: ModelList;
  shown: number | null; // the one whose curve is shown
  chosen: readonly number[];
  writes: boolean;
}

export function ModelsCard({ found, shown, chosen, writes }: Props): ReactNode {
  const { models, removed, rollback } = found;
  return (
    <section className="card" aria-label="Models">
      <header className="card-head">
        <h2>Models</h2>
        {rollback && (
          <button type="button" disabled={!writes} onClick={() => undoEntry(rollback.entry, usedIn(models), collectionChanged)}>
            Back to model {rollback.model}
          </button>
        )}
      </header>
      {models.length > 1 && <p className="quiet">Choose two to compare them on the pictures that neither has learnt from.</p>}
      <ul className="models">
        {models.map((model) => (
          <ModelLine
            key={model.id}
            model={model}
            shown={model.id === shown}
            chosen={chosen.includes(model.id)}
            full={chosen.length > 1}
            single={models.length < 2}
            writes={writes}
            choose={(yes) => choose(yes ? [...chosen, model.id] : chosen.filter((n) => n !== model.id))}
          />
        ))}
      </ul>
      {removed.length > 0 && <p className="quiet">Removed: {removed.map((n) => `model ${n}`).join(", ")}.</p>}
    </section>
  );
}

interface LineProps {
  model: ModelSummary;
  shown: boolean;
  chosen: boolean;
  full: boolean; // two are chosen already
  single: boolean;
  writes: boolean;
  choose: (yes: boolean) => void;
}

function ModelLine({ model, shown, chosen, full, single, writes, choose }: LineProps): ReactNode {
  const { facts, figures } = model;
  const name = `Model ${model.id}`;
  return (
    <li className="model">
      <label className="model-name">
        {!single && (
          <input
            type="checkbox"
            aria-label={`Compare model ${model.id}`}
            checked={chosen}
            disabled={!model.is_available || (full && !chosen)}
            onChange={(event) => choose(event.target.checked)}
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
          facts.rejection_reason && <span className="badge bad">did worse</span>
        )}
      </span>
      <p className="model-what">
        {`${how(model)}, ${ago(model.created_at)}`}
        {facts.labels !== undefined && `: ${count(facts.labels, "label")} from ${count(facts.items ?? 0, "picture")}, by ${facts.features ?? ""}`}
        {facts.rejection_reason && <small>Not put into use: {facts.rejection_reason}.</small>}
      </p>
      <dl className="model-figures">
        {Object.entries(figures.now ?? {}).map(([figure, value]) => (
          <div key={figure}>
            <dt>{figure}</dt>
            <dd>{value.toFixed(3)}</dd>
          </div>
        ))}
      </dl>
      <span className="model-actions">
        <button type="button" aria-pressed={shown} onClick={() => ask({ model: model.id })}>
          Curve <span className="sr">of model {model.id}</span>
        </button>
        {!model.in_use && (
          <button type="button" disabled={!writes || !model.is_available} onClick={() => void use(model.id)}>
            Use <span className="sr">model {model.id}</span>
          </button>
        )}
      </span>
    </li>
  );
}

function how(model: ModelSummary): string {
  if (model.method === "full") return "Learnt from everything";
  return model.parent === null ? "Learnt from corrections" : `Learnt from corrections of model ${model.parent}`;
}

function choose(numbers: readonly number[]): void {
  ask({ compare: [...numbers].sort((a, b) => a - b).join() });
}

/** What going back takes back. */
function usedIn(models: readonly ModelSummary[]): string {
  return `the use of model ${models.find((model) => model.in_use)?.id ?? ""}`;
}

async function use(id: number): Promise<void> {
  try {
    const { rollback, models: after } = await api.useModel(id);
    if (rollback) remember(rollback.entry, usedIn(after), collectionChanged);
    say(`Model ${id} is in use. Press z to undo.`);
  } catch (error) {
    say((error as Error).message);
  } finally {
    collectionChanged();
  }
}
