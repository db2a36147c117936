/** Training: start it, watch its curves, compare models, switch and go back. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { Job, ModelList } from "../api/types";
import { formatCount } from "../base/format";
import { useShortcuts } from "../base/shortcuts";
import { useLoad } from "../base/loading";
import { useSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { ErrorMessage } from "../base/components";
import { useWritePermission } from "../decisions/write-permission";
import { answerCount, undo } from "../decisions/decision-history";
import { collectionVersion } from "../shell/collection";
import { JobLine } from "../status/job-line";
import { startJob, isActive, useJobs } from "../status/jobs";
import { Curves } from "./chart";
import { ComparisonCard } from "./comparison";
import { ModelsCard } from "./models";
import { parseModelIds, findComparisonJob, describeMissing } from "./messages";

/** Features of pictures by name; the first keeps those of the model in use. */
function listFeatures(encoders: readonly string[]): [name: string, title: string][] {
  return [
    ["", "as before"],
    ["auto", "the best installed"],
    ...encoders.flatMap((name): [string, string][] => [
      [name, name],
      [`${name},colour`, `${name} and colours`],
    ]),
    ["visual-words", "visual words"],
  ];
}

export function TrainingPage(): ReactNode {
  const version = `${useStore(collectionVersion)} ${useStore(answerCount)}`;
  const modelList = useLoad(`models ${version}`, api.listModels);
  const params = useSearchParams();
  const jobs = useJobs();
  const selectedIds = parseModelIds(params.get("compare"));
  const canWrite = useWritePermission();
  useShortcuts([{ keys: ["z"], description: "Undo", run: undo }]);
  const models = modelList.value;
  if (!models) {
    return (
      <section className="page status" aria-label="Training" aria-busy={!modelList.error}>
        {modelList.error && <ErrorMessage error={modelList.error} onRetry={modelList.reload} />}
      </section>
    );
  }
  const shownId = Number(params.get("model")) || (models.models[0]?.id ?? null);
  const missingText = describeMissing(selectedIds, models);
  const availableIds = selectedIds.filter((n) => describeMissing([n], models) === null);
  return (
    <section className="page status" aria-label="Training">
      <h1>Training</h1>
      {modelList.error && <ErrorMessage error={modelList.error} onRetry={modelList.reload} />}
      <LearnCard models={models} jobs={jobs} canWrite={canWrite} />
      <CurveCard jobs={jobs} shownId={shownId} missingText={shownId === null ? null : describeMissing([shownId], models)} />
      {models.models.length > 0 && <ModelsCard modelList={models} shownId={shownId} selectedIds={availableIds} canWrite={canWrite} />}
      {missingText !== null && (
        <section className="card" aria-label="Comparison">
          <h2>Comparison</h2>
          <p role="status">{missingText} Choose two of the models above.</p>
        </section>
      )}
      {missingText === null && selectedIds.length === 2 && <ComparisonCard models={selectedIds} job={findComparisonJob(jobs, selectedIds)} canWrite={canWrite} />}
    </section>
  );
}

function LearnCard({ models, jobs, canWrite }: { models: ModelList; jobs: readonly Job[]; canWrite: boolean }): ReactNode {
  const { forecast } = models;
  const [isFull, setIsFull] = useState(false);
  const [epochs, setEpochs] = useState("");
  const [allowsWorse, setAllowsWorse] = useState(false);
  const [features, setFeatures] = useState("");
  const lastJob = jobs.find((job) => job.kind === "train" || job.options.free_words);
  const canPrepareWords = models.models.length > 0 && models.models.every((model) => model.method !== "zero-shot");
  const isBusy = jobs.some(isActive);
  const isUpToDate = forecast.method === "nothing" && !isFull && features === "";
  const epochCount = epochs === "" ? null : Number(epochs);
  const isInvalid = epochCount !== null && !(Number.isInteger(epochCount) && epochCount >= 1 && epochCount <= 10_000);
  const start = (): void => {
    const options = {
      ...(isFull && { full: true }),
      ...(epochCount !== null && { epochs: epochCount }),
      ...(allowsWorse && { even_if_worse: true }),
      ...(features !== "" && { features }),
    };
    void startJob("train", options);
  };
  return (
    <section className="card" aria-label="Learn">
      <h2>Learn</h2>
      <p>
        {forecast.decisions > 0 && (
          <>
            <strong>{formatCount(forecast.decisions, "decision")}</strong> {forecast.decisions === 1 ? "is" : "are"} not learned yet.{" "}
          </>
        )}
        <span className="quiet">{formatReason(forecast.reason)}</span>
      </p>
      <form
        className="learn-form"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <div className="segments" role="group" aria-label="How to learn">
          <button type="button" aria-pressed={!isFull} onClick={() => setIsFull(false)}>
            As needed
          </button>
          <button type="button" aria-pressed={isFull} onClick={() => setIsFull(true)}>
            From scratch
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
            aria-invalid={isInvalid}
            onChange={(event) => setEpochs(event.target.value)}
          />
        </label>
        <label className="field-inline">
          <span>Features</span>
          <select value={features} onChange={(event) => setFeatures(event.target.value)}>
            {listFeatures(models.encoders).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label className="check-line">
          <input type="checkbox" checked={allowsWorse} onChange={(event) => setAllowsWorse(event.target.checked)} />
          Use it even if it does worse or has other features
        </label>
        <button type="submit" className="primary" disabled={isBusy || !canWrite || isUpToDate || isInvalid}>
          Learn
        </button>
      </form>
      <p className="quiet">
        {isFull || forecast.method === "full"
          ? "A new model learns from all tags; that takes longest. "
          : forecast.method === "corrections" && "The model in use goes on with what changed, new labels included. "}
        A model that does worse on the pictures held out, by more than chance, or has other features, is kept but not used until you press Use.
      </p>
      {canPrepareWords && (
        <div className="job-buttons">
          <div>
            <button type="button" disabled={isBusy || !canWrite} onClick={() => void startJob("apply", { free_words: true })}>
              Prepare free words
            </button>
            <small>Let searches find pictures by words that are not labels</small>
          </div>
        </div>
      )}
      {lastJob && (
        <ul className="jobs" aria-live="polite">
          <JobLine job={lastJob} />
        </ul>
      )}
    </section>
  );
}

/** Curves of the running training, or of a model. */
function CurveCard({ jobs, shownId, missingText }: { jobs: readonly Job[]; shownId: number | null; missingText: string | null }): ReactNode {
  const runningJob = jobs.find((job) => job.kind === "train" && job.state === "running");
  const model = useLoad(shownId === null || runningJob || missingText ? null : `model ${shownId}`, (signal) => api.getModel(shownId ?? 0, signal));
  const value = model.isLoading ? null : model.value; // while loading, the value is still that of the previous model
  const points = (runningJob ? runningJob.progress.curve : value?.curve) ?? [];
  if (!runningJob && shownId === null) return null;
  return (
    <section className="card" aria-label="Curve">
      <h2>{runningJob ? "The training that runs" : `How model ${shownId} was trained`}</h2>
      {!runningJob && missingText ? (
        <p role="status">{missingText}</p>
      ) : !runningJob && model.error ? (
        <ErrorMessage error={model.error} onRetry={model.reload} />
      ) : points.length ? (
        <Curves points={points} bestEpoch={runningJob ? null : (value?.facts.best_epoch ?? null)} />
      ) : (
        <p className="quiet chart-none">{runningJob ? "No epoch is done yet." : value ? "Its epochs were not written down." : ""}</p>
      )}
    </section>
  );
}

/** First clause of a reason; the rest names flags of the command line. */
function formatReason(reason: string): string {
  const clause = reason.split(";")[0]!;
  return `${clause[0]?.toUpperCase() ?? ""}${clause.slice(1)}.`;
}
