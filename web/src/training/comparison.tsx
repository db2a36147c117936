/** Two models beside each other, on the pictures that neither has learnt from. */

import type { ReactNode } from "react";
import type { Comparison, JobStatus, LabelDifference } from "../api/types";
import { ago, count, number } from "../base/format";
import { galleryOf } from "../base/router";
import { Link, Trouble } from "../base/ui";
import { JobLine } from "../status/job-line";
import { startJob, underWay } from "../status/jobs";
import { comparisonOf, signed, verdictOf } from "./words";

const FIGURES = ["MAP", "p@1", "p@5"];

interface Props {
  models: readonly number[];
  job: JobStatus | null; // the last one that compared them
  writes: boolean;
}

export function ComparisonCard({ models, job, writes }: Props): ReactNode {
  const found = comparisonOf(job);
  const working = job !== null && underWay(job);
  return (
    <section className="card" aria-label="Comparison">
      <header className="card-head">
        <h2>
          Model {models[1]} beside model {models[0]}
        </h2>
        {!working && (
          <button type="button" disabled={!writes} onClick={() => void startJob("compare", { models: [...models] })}>
            {found ? "Compare again" : "Compare"}
          </button>
        )}
      </header>
      {working && (
        <ul className="jobs" aria-live="polite">
          <JobLine job={job} />
        </ul>
      )}
      {job?.state === "failed" && <Trouble error={new Error(job.error ?? "no reason was given")} />}
      {found && <Result found={found} at={job?.ended_at ?? null} />}
    </section>
  );
}

function Result({ found, at }: { found: Comparison; at: string | null }): ReactNode {
  const [first, second] = found.models;
  if (!first || !second) return null;
  return (
    <>
      <p role="status">{verdictOf(second, first.model, found.items)}</p>
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
          {found.models.map((one) => (
            <tr key={one.model}>
              <th scope="row">{one.model}</th>
              {FIGURES.map((name) => (
                <td key={name}>{one.figures[name]?.toFixed(3)}</td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">Difference</th>
            {FIGURES.map((name) => {
              const gap = second.difference?.[name];
              return (
                <td key={name}>
                  {gap && (
                    <>
                      {signed(gap.mean)} <small>{`${signed(gap.low)} to ${signed(gap.high)}`}</small>
                    </>
                  )}
                </td>
              );
            })}
          </tr>
        </tbody>
      </table>
      <div className="moved">
        <MovedLabels name="Gained most" moved={second.gained} />
        <MovedLabels name="Lost most" moved={second.lost} />
      </div>
      <p className="quiet">
        {`Judged by ${count(found.tags, "tag")} of ${count(found.labels, "label")}, as they were ${at ? ago(at) : "then"}. `}
        {found.models
          .filter((one) => one.labels < found.labels)
          .map((one) => `Model ${one.model} knows ${number(one.labels)} of these labels. `)}
        {found.notes.map((note) => `${note[0]?.toUpperCase()}${note.slice(1)}. `)}
      </p>
    </>
  );
}

/** A label's figure is the mean of 1 / its place: 1 where it always comes first. */
function MovedLabels({ name, moved }: { name: string; moved: readonly LabelDifference[] }): ReactNode {
  if (!moved.length) return null;
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
        {moved.map((one) => (
          <tr key={one.label}>
            <th scope="row">
              <Link to={galleryOf(one.label)}>{one.label}</Link>
            </th>
            <td>{number(one.items)}</td>
            <td>{`${one.before.toFixed(2)} to ${one.after.toFixed(2)}`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
