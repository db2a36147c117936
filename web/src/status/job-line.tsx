/** A job as one line: what it does, how far it is, and an end to it. */

import type { ReactNode } from "react";
import type { JobStatus } from "../api/types";
import { ago, number } from "../base/format";
import { useMayWrite } from "../decisions/may";
import { JOB_NAMES, share, stopJob, underWay } from "./jobs";
import { notesOf } from "./words";

export function JobLine({ job }: { job: JobStatus }): ReactNode {
  const done = share(job);
  const writes = useMayWrite();
  const { stage, done: so_far, total, unit } = job.progress;
  return (
    <li className={`job ${job.state}`}>
      <span className="job-name">{JOB_NAMES[job.kind]}</span>
      <span className="job-how">
        {underWay(job)
          ? [stage, so_far !== undefined ? `${number(so_far)}${total ? ` of ${number(total)}` : ""} ${unit ?? ""}` : ""]
              .filter(Boolean)
              .join(": ") || job.state
          : job.state === "failed"
            ? `failed: ${job.error ?? "no reason was given"}`
            : `${job.state} ${job.ended_at ? ago(job.ended_at) : ""}`}
      </span>
      {underWay(job) && (
        <>
          <progress aria-label={JOB_NAMES[job.kind]} {...(done === null ? {} : { value: done })} />
          <button type="button" disabled={!writes} onClick={() => void stopJob(job.id)}>
            Stop
          </button>
        </>
      )}
      {notesOf(job).map((note) => (
        <small key={note} className="job-note">
          {note}
        </small>
      ))}
    </li>
  );
}
