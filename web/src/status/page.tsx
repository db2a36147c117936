/** Overview of the collection: counts, jobs, model, journal. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus, Job } from "../api/types";
import { formatAge, formatCount, formatNumber } from "../base/format";
import { useShortcuts } from "../base/shortcuts";
import { type LoadResult, useLoad } from "../base/loading";
import { useStore } from "../base/store";
import { Link, ErrorMessage } from "../base/components";
import { answerCount, undo, undoEntry } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { refreshCollection, collectionVersion } from "../shell/collection";
import { JobLine } from "./job-line";
import { jobsLoaded, startJob, isActive, useJobs } from "./jobs";
import { describeIndex, describeMethod, describeThresholds } from "./messages";

export function StatusPage({ collection }: { collection: LoadResult<CollectionStatus> }): ReactNode {
  const facts = collection.value;
  const jobs = useJobs();
  const isBusy = jobs.some(isActive);
  useShortcuts([{ keys: ["z"], description: "Undo", run: undo }]);
  const isKnown = useStore(jobsLoaded) && (facts !== null || collection.error !== null);
  if (!isKnown) return <section className="page status" aria-label="Status" aria-busy="true" />;
  return (
    <section className="page status" aria-label="Status">
      <h1>{facts ? (facts.folder.split("/").filter(Boolean).at(-1) ?? facts.folder) : "Collection"}</h1>
      {collection.error && <ErrorMessage error={collection.error} onRetry={collection.reload} />}
      {facts && <CollectionCounts facts={facts} />}
      <section className="card" aria-label="Work">
        <h2>Work</h2>
        <div className="job-buttons">
          <JobButton kind="scan" description="Look for new, moved and changed files" name="Scan" isBusy={isBusy} facts={facts} />
          <JobButton kind="apply" description="Let the model look at new pictures" name="Suggest" isBusy={isBusy} facts={facts} />
          {facts?.index && describeIndex(facts.index) && (
            <JobButton kind="index" description={describeIndex(facts.index) ?? ""} name={facts.index.state === "ready" ? "Index again" : "Index"} isBusy={isBusy} facts={facts} />
          )}
        </div>
        {jobs.length > 0 && (
          <ul className="jobs" aria-live="polite">
            {jobs.slice(0, 5).map((job) => (
              <JobLine key={job.id} job={job} />
            ))}
          </ul>
        )}
      </section>
      <ModelSummaryCard facts={facts} />
      <JournalCard />
    </section>
  );
}

function CollectionCounts({ facts }: { facts: CollectionStatus }): ReactNode {
  const counts: [string, number][] = [
    ["pictures", facts.items.present ?? 0],
    ["labels", facts.labels],
    ["accepted tags", facts.accepted],
    ["rejected", facts.rejected],
    ["open suggestions", facts.suggestions],
  ];
  if (facts.items.missing) counts.push(["missing files", facts.items.missing]);
  if (facts.items.unreadable) counts.push(["unreadable files", facts.items.unreadable]);
  return (
    <dl className="counts">
      {counts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formatNumber(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

interface JobButtonProps {
  kind: Job["kind"];
  name: string;
  description: string;
  isBusy: boolean;
  facts: CollectionStatus | null;
}

function JobButton({ kind, name, description, isBusy, facts }: JobButtonProps): ReactNode {
  const isAllowed = facts?.role === "write" && !(kind === "apply" && !facts.model && !facts.labels);
  return (
    <div>
      <button type="button" disabled={isBusy || !isAllowed} onClick={() => void startJob(kind)}>
        {name}
      </button>
      <small>{description}</small>
    </div>
  );
}

function ModelSummaryCard({ facts }: { facts: CollectionStatus | null }): ReactNode {
  if (!facts) return null;
  const { model, thresholds = [] } = facts;
  return (
    <section className="card" aria-label="Model">
      <h2>Model</h2>
      <p>
        {model
          ? `Number ${model.id}, ${describeMethod(model.method)}, ${formatAge(model.created_at)}.`
          : "None is in use: tag some pictures and train, or choose a trained model."}{" "}
        <Link address="/training">{model ? "Learn, compare, switch" : "Learn"}</Link>
      </p>
      {thresholds.length > 0 && (
        <p className="quiet">{describeThresholds(thresholds)}</p>
      )}
    </section>
  );
}

function JournalCard(): ReactNode {
  const version = `${useStore(answerCount)} ${useStore(collectionVersion)}`;
  const [entryLimit, setEntryLimit] = useState(15);
  const canWrite = useWritePermission();
  const journal = useLoad(`journal ${version} ${entryLimit}`, (signal) => api.listJournal(null, entryLimit, signal));
  const entries = journal.value?.entries ?? [];
  return (
    <section className="card" aria-label="History">
      <h2>History</h2>
      {journal.error && <ErrorMessage error={journal.error} onRetry={journal.reload} />}
      <ul className="entries">
        {entries.map((entry) => (
          <li key={entry.id} className={entry.undone_by !== null ? "undone" : ""}>
            <span>{entry.summary}</span>
            <small title={entry.at}>
              {entry.by}, {formatAge(entry.at)}, {formatCount(entry.changes, "change")}
            </small>
            {canWrite && entry.undone_by === null && entry.undoes === null && entry.changes > 0 && (
              <button type="button" aria-label={`Undo ${entry.summary}`} onClick={() => undoEntry(entry.id, entry.summary, refreshCollection)}>
                Undo
              </button>
            )}
          </li>
        ))}
      </ul>
      {entries.length === entryLimit && (
        <button type="button" onClick={() => setEntryLimit(entryLimit + 50)}>
          Older
        </button>
      )}
    </section>
  );
}
