/** Comparison of two models on pictures that neither was trained on. */

import type { ReactNode } from "react";
import type { Comparison, Job, LabelDifference } from "../api/types";
import { formatAge, formatCount, formatNumber } from "../base/format";
import { buildGalleryAddress } from "../base/router";
import { Link, ErrorMessage } from "../base/components";
import { JobLine } from "../status/job-line";
import { startJob, isActive } from "../status/jobs";
import { getComparison, formatSigned, describeVerdict } from "./messages";

const FIGURES = ["MAP", "p@1", "p@5"];

interface Props {
  models: readonly number[];
  job: Job | null; // the latest comparison of these models
  canWrite: boolean;
}

export function ComparisonCard({ models, job, canWrite }: Props): ReactNode {
  const comparison = getComparison(job);
  const isRunning = job !== null && isActive(job);
  return (
    <section className="card" aria-label="Comparison">
      <header className="card-head">
        <h2>
          Model {models[1]} beside model {models[0]}
        </h2>
        {!isRunning && (
          <button type="button" disabled={!canWrite} onClick={() => void startJob("compare", { models: [...models] })}>
            {comparison ? "Compare again" : "Compare"}
          </button>
        )}
      </header>
      {isRunning && (
        <ul className="jobs" aria-live="polite">
          <JobLine job={job} />
        </ul>
      )}
      {job?.state === "failed" && <ErrorMessage error={new Error(job.error ?? "no reason was given")} />}
      {comparison && <ComparisonResult comparison={comparison} endedAt={job?.ended_at ?? null} />}
    </section>
  );
}

function ComparisonResult({ comparison, endedAt }: { comparison: Comparison; endedAt: string | null }): ReactNode {
  const [firstModel, secondModel] = comparison.models;
  if (!firstModel || !secondModel) return null;
  return (
    <>
      <p role="status">{describeVerdict(secondModel, firstModel.model, comparison.items)}</p>
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">Model</th>
            {FIGURES.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {comparison.models.map((model) => (
            <tr key={model.model}>
              <th scope="row">{model.model}</th>
              {FIGURES.map((name) => (
                <td key={name}>{model.figures[name]?.toFixed(3)}</td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">Difference</th>
            {FIGURES.map((name) => {
              const difference = secondModel.difference?.[name];
              return (
                <td key={name}>
                  {difference && (
                    <>
                      {formatSigned(difference.mean)} <small>{`${formatSigned(difference.low)} to ${formatSigned(difference.high)}`}</small>
                    </>
                  )}
                </td>
              );
            })}
          </tr>
        </tbody>
      </table>
      <div className="difference-tables">
        <LabelDifferences name="Gained most" differences={secondModel.gained} />
        <LabelDifferences name="Lost most" differences={secondModel.lost} />
      </div>
      <p className="quiet">
        {`Judged by ${formatCount(comparison.tags, "tag")} of ${formatCount(comparison.labels, "label")}, as they were ${endedAt ? formatAge(endedAt) : "then"}. `}
        {comparison.models
          .filter((model) => model.labels < comparison.labels)
          .map((model) => `Model ${model.model} knows ${formatNumber(model.labels)} of these labels. `)}
        {comparison.notes.map((note) => `${note[0]?.toUpperCase()}${note.slice(1)}. `)}
      </p>
    </>
  );
}

/** Table of labels; a figure is the mean reciprocal rank of the label. */
function LabelDifferences({ name, differences }: { name: string; differences: readonly LabelDifference[] }): ReactNode {
  if (!differences.length) return null;
  return (
    <table>
      <caption>{name}</caption>
      <thead>
        <tr>
          <th scope="col">Label</th>
          <th scope="col">Pictures</th>
          <th scope="col">
            <abbr title="Mean of 1 / its place among the suggestions: 1 where it always comes first">1 / place</abbr>
          </th>
        </tr>
      </thead>
      <tbody>
        {differences.map((model) => (
          <tr key={model.label}>
            <th scope="row">
              <Link address={buildGalleryAddress(model.label)}>{model.label}</Link>
            </th>
            <td>{formatNumber(model.items)}</td>
            <td>{`${model.reference.toFixed(2)} to ${model.candidate.toFixed(2)}`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
