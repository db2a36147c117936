/** Training: start it, watch its curves, compare models, switch and go back. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { JobStatus, ModelList } from "../api/types";
import { count } from "../base/format";
import { useKeys } from "../base/keys";
import { useLoad } from "../base/load";
import { useAsked } from "../base/router";
import { useStore } from "../base/store";
import { Trouble } from "../base/ui";
import { useMayWrite } from "../decisions/may";
import { settledCount, undo } from "../decisions/desk";
import { collectionTurn } from "../shell/collection";
import { JobLine } from "../status/job-line";
import { startJob, underWay, useJobs } from "../status/jobs";
import { Curves } from "./chart";
import { ComparisonCard } from "./comparison";
import { ModelsCard } from "./models";
import { chosenIn, comparisonJob, missingOf } from "./words";

export function TrainingPage(): ReactNode {
  const turn = `${useStore(collectionTurn)} ${useStore(settledCount)}`;
  const found = useLoad(`models ${turn}`, api.models);
  const asked = useAsked();
  const jobs = useJobs();
  const chosen = chosenIn(asked.get("compare"));
  const writes = useMayWrite();
  useKeys([{ keys: ["z"], told: "Undo", run: undo }]);
  const models = found.value;
  if (!models) {
    return (
      <section className="page status" aria-label="Training" aria-busy={!found.error}>
        {found.error && <Trouble error={found.error} again={found.again} />}
      </section>
    );
  }
  const shown = Number(asked.get("model")) || (models.models[0]?.id ?? null);
  const missing = missingOf(chosen, models);
  const known = chosen.filter((n) => missingOf([n], models) === null);
  return (
    <section className="page status" aria-label="Training">
      <h1>Training</h1>
      {found.error && <Trouble error={found.error} again={found.again} />}
      <Learn models={models} jobs={jobs} writes={writes} />
      <CurveCard jobs={jobs} shown={shown} missing={shown === null ? null : missingOf([shown], models)} />
      {models.models.length > 0 && <ModelsCard found={models} shown={shown} chosen={known} writes={writes} />}
      {missing !== null && (
        <section className="card" aria-label="Comparison">
          <h2>Comparison</h2>
          <p role="status">{missing} Choose two of the models above.</p>
        </section>
      )}
      {missing === null && chosen.length === 2 && <ComparisonCard models={chosen} job={comparisonJob(jobs, chosen)} writes={writes} />}
    </section>
  );
}

function Learn({ models, jobs, writes }: { models: ModelList; jobs: readonly JobStatus[]; writes: boolean }): ReactNode {
  const { forecast } = models;
  const [anew, setAnew] = useState(false);
  const [epochs, setEpochs] = useState("");
  const [worse, setWorse] = useState(false);
  const last = jobs.find((job) => job.kind === "train");
  const busy = jobs.some(underWay);
  const nothing = forecast.method === "nothing" && !anew;
  const passes = epochs === "" ? null : Number(epochs);
  const wrong = passes !== null && !(Number.isInteger(passes) && passes >= 1 && passes <= 10_000);
  const start = (): void => {
    const options = { ...(anew && { full: true }), ...(passes !== null && { epochs: passes }), ...(worse && { even_if_worse: true }) };
    void startJob("train", options);
  };
  return (
    <section className="card" aria-label="Learn">
      <h2>Learn</h2>
      <p>
        <strong>{count(forecast.decisions, "decision")}</strong> {forecast.decisions === 1 ? "is" : "are"} not learnt yet.{" "}
        <span className="quiet">{sentence(forecast.reason)}</span>
      </p>
      <form
        className="learn"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <div className="segments" role="group" aria-label="How to learn">
          <button type="button" aria-pressed={!anew} onClick={() => setAnew(false)}>
            As needed
          </button>
          <button type="button" aria-pressed={anew} onClick={() => setAnew(true)}>
            Anew
          </button>
        </div>
        <label className="field-inline">
          <span>Epochs</span>
          <input
            type="number"
            min={1}
            max={10_000}
            placeholder="usual"
            value={epochs}
            aria-invalid={wrong}
            onChange={(event) => setEpochs(event.target.value)}
          />
        </label>
        <label className="check-line">
          <input type="checkbox" checked={worse} onChange={(event) => setWorse(event.target.checked)} />
          Use it even if it does worse
        </label>
        <button type="submit" className="primary" disabled={busy || !writes || nothing || wrong}>
          Learn
        </button>
      </form>
      <p className="quiet">
        {anew || forecast.method === "full"
          ? "A new model learns from all tags; that takes longest. "
          : forecast.method === "corrections" && "The model in use goes on with what changed, new labels included. "}
        A model that does worse on the pictures held out, by more than chance, is kept but not used.
      </p>
      {last && (
        <ul className="jobs" aria-live="polite">
          <JobLine job={last} />
        </ul>
      )}
    </section>
  );
}

/** The curve of the training that runs, or of a model. */
function CurveCard({ jobs, shown, missing }: { jobs: readonly JobStatus[]; shown: number | null; missing: string | null }): ReactNode {
  const running = jobs.find((job) => job.kind === "train" && job.state === "running");
  const model = useLoad(shown === null || running || missing ? null : `model ${shown}`, (signal) => api.model(shown ?? 0, signal));
  const value = model.busy ? null : model.value; // while it is asked for, that of the one before is still there
  const points = (running ? running.progress.curve : value?.curve) ?? [];
  if (!running && shown === null) return null;
  return (
    <section className="card" aria-label="Curve">
      <h2>{running ? "The training that runs" : `How model ${shown} was trained`}</h2>
      {!running && missing ? (
        <p role="status">{missing}</p>
      ) : !running && model.error ? (
        <Trouble error={model.error} again={model.again} />
      ) : points.length ? (
        <Curves points={points} kept={running ? null : (value?.facts.best_epoch ?? null)} />
      ) : (
        <p className="quiet chart-none">{running ? "No epoch is done yet." : value ? "Its epochs were not written down." : ""}</p>
      )}
    </section>
  );
}

/** The first clause of a reason; what follows tells the flags of the command line. */
function sentence(why: string): string {
  const first = why.split(";")[0]!;
  return `${first[0]?.toUpperCase() ?? ""}${first.slice(1)}.`;
}
