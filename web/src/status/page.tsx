/** The collection at a glance: counts, the model, work under way, and what was done. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus, JobStatus } from "../api/types";
import { ago, count, number } from "../base/format";
import { useKeys } from "../base/keys";
import { type Loaded, useLoad } from "../base/load";
import { useStore } from "../base/store";
import { Link, Trouble } from "../base/ui";
import { settledCount, undo, undoEntry } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { collectionChanged, collectionTurn } from "../shell/collection";
import { JobLine } from "./job-line";
import { jobsKnown, startJob, underWay, useJobs } from "./jobs";
import { indexTold, thresholdsTold } from "./words";

export function StatusPage({ collection }: { collection: Loaded<CollectionStatus> }): ReactNode {
  const facts = collection.value;
  const jobs = useJobs();
  const busy = jobs.some(underWay);
  useKeys([{ keys: ["z"], told: "Undo", run: undo }]);
  const known = useStore(jobsKnown) && (facts !== null || collection.error !== null);
  if (!known) return <section className="page status" aria-label="Status" aria-busy="true" />;
  return (
    <section className="page status" aria-label="Status">
      <h1>{facts ? (facts.folder.split("/").filter(Boolean).at(-1) ?? facts.folder) : "Collection"}</h1>
      {collection.error && <Trouble error={collection.error} again={collection.again} />}
      {facts && <Counts facts={facts} />}
      <section className="card" aria-label="Work">
        <h2>Work</h2>
        <div className="work">
          <Start kind="scan" told="Look for new, moved and changed files" name="Scan" busy={busy} facts={facts} />
          <Start kind="apply" told="Let the model look at new pictures" name="Suggest" busy={busy} facts={facts} />
          {facts?.index && indexTold(facts.index) && (
            <Start kind="index" told={indexTold(facts.index) ?? ""} name={facts.index.state === "ready" ? "Index anew" : "Index"} busy={busy} facts={facts} />
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
      <Model facts={facts} />
      <History />
    </section>
  );
}

function Counts({ facts }: { facts: CollectionStatus }): ReactNode {
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
          <dd>{number(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

interface StartProps {
  kind: JobStatus["kind"];
  name: string;
  told: string;
  busy: boolean;
  facts: CollectionStatus | null;
}

function Start({ kind, name, told, busy, facts }: StartProps): ReactNode {
  const allowed = facts?.role === "write" && !(kind === "apply" && !facts.model);
  return (
    <div>
      <button type="button" disabled={busy || !allowed} onClick={() => void startJob(kind)}>
        {name}
      </button>
      <small>{told}</small>
    </div>
  );
}

function Model({ facts }: { facts: CollectionStatus | null }): ReactNode {
  if (!facts) return null;
  const { model, thresholds = [] } = facts;
  return (
    <section className="card" aria-label="Model">
      <h2>Model</h2>
      <p>
        {model
          ? `Number ${model.id}, ${model.method === "corrections" ? "learnt from corrections" : "learnt from everything"}, ${ago(model.created_at)}.`
          : "None is in use: tag some pictures and let it learn, or choose one that has learnt."}{" "}
        <Link to="/training">{model ? "Learn, compare, switch" : "Learn"}</Link>
      </p>
      {thresholds.length > 0 && (
        <p className="quiet">{thresholdsTold(thresholds)}</p>
      )}
    </section>
  );
}

function History(): ReactNode {
  const turn = `${useStore(settledCount)} ${useStore(collectionTurn)}`;
  const [most, setMost] = useState(15);
  const writes = useMayWrite();
  const found = useLoad(`journal ${turn} ${most}`, (signal) => api.journal(null, most, signal));
  const entries = found.value?.entries ?? [];
  return (
    <section className="card" aria-label="History">
      <h2>History</h2>
      {found.error && <Trouble error={found.error} again={found.again} />}
      <ul className="entries">
        {entries.map((entry) => (
          <li key={entry.id} className={entry.undone_by !== null ? "undone" : ""}>
            <span>{entry.summary}</span>
            <small title={entry.at}>
              {entry.by}, {ago(entry.at)}, {count(entry.changes, "change")}
            </small>
            {writes && entry.undone_by === null && entry.undoes === null && entry.changes > 0 && (
              <button type="button" aria-label={`Undo ${entry.summary}`} onClick={() => undoEntry(entry.id, entry.summary, collectionChanged)}>
                Undo
              </button>
            )}
          </li>
        ))}
      </ul>
      {entries.length === most && (
        <button type="button" onClick={() => setMost(most + 50)}>
          Older
        </button>
      )}
    </section>
  );
}
