/** Line of a job: name, progress, button to stop it. */

import type { ReactNode } from "react";
import type { Job } from "../api/types";
import { formatAge, formatNumber } from "../base/format";
import { useWritePermission } from "../decisions/write-permission";
import { JOB_NAMES, getProgress, stopJob, isActive } from "./jobs";
import { listJobNotes } from "./messages";

export function JobLine({ job }: { job: Job }): ReactNode {
  const progress = getProgress(job);
  const canWrite = useWritePermission();
  const { stage, completed, total, unit } = job.progress;
  return (
    <li className={`job ${job.state}`}>
      <span className="job-name">{JOB_NAMES[job.kind]}</span>
      <span className="job-progress">
        {isActive(job)
          ? [stage, completed !== undefined ? `${formatNumber(completed)}${total ? ` of ${formatNumber(total)}` : ""} ${unit ?? ""}` : ""]
              .filter(Boolean)
              .join(": ") || job.state
          : job.state === "failed"
            ? `failed: ${job.error ?? "no reason was given"}`
            : `${job.state} ${job.ended_at ? formatAge(job.ended_at) : ""}`}
      </span>
      {isActive(job) && (
        <>
          <progress aria-label={JOB_NAMES[job.kind]} {...(progress === null ? {} : { value: progress })} />
          <button type="button" disabled={!canWrite} onClick={() => void stopJob(job.id)}>
            Stop
          </button>
        </>
      )}
      {listJobNotes(job).map((note) => (
        <small key={note} className="job-note">
          {note}
        </small>
      ))}
    </li>
  );
}
