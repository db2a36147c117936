/** Merge proposals, reviewed by keys: the reasons, and pictures of both labels. */

import { type ReactNode, useEffect, useState } from "react";
import { getThumbnailUrl } from "../api/client";
import { labelApi } from "../api/labels";
import type { IllustratedLabel, MergeProposal, ProposalPage } from "../api/types";
import { formatAge, formatCount, formatNumber, formatPercent } from "../base/format";
import { useLoad } from "../base/loading";
import { openDialog } from "../base/router";
import { useStore } from "../base/store";
import { Bar, EmptyState, Icon, ErrorMessage } from "../base/components";
import { siblingItems } from "../item/sibling-items";
import { collectionVersion } from "../shell/collection";
import { notify } from "../base/notifications";
import { startJob, isActive, useJobs } from "../status/jobs";
import { applyChange } from "./label-changes";
import { type ProposalAction, useProposalShortcuts } from "./shortcuts";

const PAGE_SIZE = 20;
const SOURCE_NAMES: Record<string, string> = { knowledge: "knowledge of words", model: "a model" };

/** Choice for a proposal: the label that stays, and the excluded ones. */
interface Choice {
  targetId: number;
  excludedIds: ReadonlySet<number>;
}

function buildProposalKey(proposal: MergeProposal): string {
  return [proposal.target, ...proposal.labels].map((label) => label.id).join(" ");
}

export function ProposalsView({ canWrite }: { canWrite: boolean }): ReactNode {
  const version = useStore(collectionVersion);
  const [position, setPosition] = useState(0);
  const [choices, setChoices] = useState<ReadonlyMap<string, Choice>>(new Map());
  const [isBusy, setIsBusy] = useState(false);
  const page = Math.floor(position / PAGE_SIZE);
  const loadedPage = useLoad(`proposals ${version} ${page}`, (signal) => labelApi.listProposals(page * PAGE_SIZE, PAGE_SIZE, signal));
  const total = loadedPage.value?.total ?? 0;
  const proposals = loadedPage.value?.proposals ?? [];
  const pagePosition = Math.min(position - page * PAGE_SIZE, Math.max(proposals.length - 1, 0));
  const current = proposals[pagePosition];
  const key = current ? buildProposalKey(current) : "";
  const choice = choices.get(key) ?? { targetId: current?.target.id ?? 0, excludedIds: new Set<number>() };
  const moveTo = (next: number): void => setPosition(Math.max(0, Math.min(total - 1, next)));
  const updateChoice = (changes: Partial<Choice>): void => setChoices((previous) => new Map(previous).set(key, { ...choice, ...changes }));

  const decide = async (action: ProposalAction): Promise<void> => {
    if (!current || !canWrite || isBusy || loadedPage.isLoading) return;
    const included = [current.target, ...current.labels].filter((label) => !choice.excludedIds.has(label.id));
    const target = included.find((label) => label.id === choice.targetId);
    const merged = included.filter((label) => label.id !== choice.targetId);
    if (!target || !merged.length) {
      notify("Leave two labels or more in.");
      return;
    }
    setIsBusy(true);
    const names = merged.map((label) => `“${label.name}”`).join(", ");
    const problem =
      action === "merge"
        ? await applyChange(labelApi.merge(merged.map((label) => label.id), target.id), `Merged ${names} into “${target.name}”`)
        : await applyChange(labelApi.excludeMerge(included.map((label) => label.id)), `Kept apart: “${target.name}”, ${names}`);
    setIsBusy(false);
    if (problem !== null) {
      notify(problem);
      loadedPage.reload();
    }
  };
  useProposalShortcuts((offset) => moveTo(position + offset), (action) => void decide(action));
  const pictures = current && [current.target, ...current.labels].flatMap((label) => label.pictures);
  useEffect(() => siblingItems.set(pictures ?? []), [key]); // eslint-disable-line react-hooks/exhaustive-deps

  if (loadedPage.error) return <ErrorMessage error={loadedPage.error} onRetry={loadedPage.reload} />;
  if (!loadedPage.value) return <div className="proposals" aria-busy="true" />;
  return (
    <div className={`proposals ${loadedPage.isLoading ? "stale" : ""}`}>
      {loadedPage.value.created === null ? (
        <ComparisonPrompt canWrite={canWrite} />
      ) : (
        <ComparisonSummary page={loadedPage.value} createdAt={loadedPage.value.created} canWrite={canWrite} />
      )}
      {!current ? (
        loadedPage.value.created !== null && <EmptyState title="Nothing is left to decide" />
      ) : (
        <div className="proposals-main">
          <ol className="proposal-list" aria-label="Proposals" start={page * PAGE_SIZE + 1}>
            {proposals.map((proposal, i) => (
              <li key={buildProposalKey(proposal)}>
                <button type="button" aria-current={i === pagePosition || undefined} onClick={() => setPosition(page * PAGE_SIZE + i)}>
                  <span className="label-name">
                    {proposal.labels.map((label) => label.name).join(", ")} → {proposal.target.name}
                  </span>
                  <small>{formatPercent(proposal.score)}</small>
                </button>
              </li>
            ))}
          </ol>
          <article className="proposal" aria-label={`Proposal ${position + 1} of ${total}`}>
            <div className="proposal-body">
              <h2>
                Could these be one?{" "}
                <small>
                  {formatPercent(current.score)} sure; {formatNumber(page * PAGE_SIZE + pagePosition + 1)} of {formatNumber(total)}
                </small>
              </h2>
              <fieldset className="proposal-sides">
                <legend>The label that stays</legend>
                {[current.target, ...current.labels].map((label) => (
                  <ProposalSide key={label.id} label={label} proposal={current} choice={choice} onChoose={updateChoice} />
                ))}
              </fieldset>
              <ProposalReasons proposal={current} />
            </div>
            <div className="review-actions">
              <button type="button" onClick={() => moveTo(position - 1)} aria-label="Proposal before" disabled={position === 0}>
                <Icon name="back" />
              </button>
              <button type="button" onClick={() => moveTo(position + 1)} aria-label="Next proposal" disabled={position >= total - 1}>
                <Icon name="next" />
              </button>
              <button type="button" disabled={!canWrite || isBusy} onClick={() => void decide("apart")}>
                Keep apart
              </button>
              <button type="button" className="primary" disabled={!canWrite || isBusy} onClick={() => void decide("merge")}>
                Merge
              </button>
            </div>
          </article>
        </div>
      )}
    </div>
  );
}

/** Time and state of the last comparison, and a button for a new one. */
function ComparisonSummary({ page, createdAt, canWrite }: { page: ProposalPage; createdAt: string; canWrite: boolean }): ReactNode {
  return (
    <div className="comparison-summary" aria-live="polite">
      <p>
        <strong>{formatCount(page.total, "proposal")}</strong>{" "}
        <small>
          compared {formatAge(createdAt)}
          {page.changes > 0 && `, ${formatCount(page.changes, "change")} since`}
          {page.is_other_model && !page.unused_sources["model"] && ", by another model than the one in use"}
          {Object.entries(page.unused_sources).map(([source, reason]) => `; ${SOURCE_NAMES[source] ?? source} was not used (${reason})`)}
          {page.is_other_model && page.unused_sources["model"] && "; there is one in use now: compare again to use it"}
        </small>
      </p>
      <CompareButton name="Compare again" canWrite={canWrite} />
    </div>
  );
}

function ComparisonPrompt({ canWrite }: { canWrite: boolean }): ReactNode {
  return (
    <EmptyState title="Which labels could be one?">
      <p>
        wsabie compares how labels are spelled, what they mean to the model, and which come together. You then merge
        similar ones, or keep them apart.
      </p>
      <CompareButton name="Compare labels" className="primary" canWrite={canWrite} />
    </EmptyState>
  );
}

function CompareButton({ name, className, canWrite }: { name: string; className?: string; canWrite: boolean }): ReactNode {
  const job = useJobs().find((activeJob) => activeJob.kind === "tidy" && isActive(activeJob));
  if (job) return <p className="quiet">{job.state === "waiting" ? "Waits for other work (see Status)" : "Comparing …"}</p>;
  return (
    <button type="button" className={className} disabled={!canWrite} onClick={() => void startJob("tidy")}>
      {name}
    </button>
  );
}

interface ProposalSideProps {
  label: IllustratedLabel;
  proposal: MergeProposal;
  choice: Choice;
  onChoose: (changes: Partial<Choice>) => void;
}

function ProposalSide({ label, proposal, choice, onChoose }: ProposalSideProps): ReactNode {
  const isTarget = choice.targetId === label.id;
  const isExcluded = choice.excludedIds.has(label.id);
  const toggle = (): void => {
    const excludedIds = new Set(choice.excludedIds);
    if (!excludedIds.delete(label.id)) excludedIds.add(label.id);
    onChoose({ excludedIds });
  };
  return (
    <div className={`proposal-side ${isTarget ? "target" : ""} ${isExcluded ? "excluded" : ""}`}>
      <label className="check-line">
        <input type="radio" name={`into ${buildProposalKey(proposal)}`} checked={isTarget} disabled={isExcluded} onChange={() => onChoose({ targetId: label.id })} />
        <span className="label-name">{label.name}</span>
        <small>
          {label.language} {formatCount(label.items, "picture")}
        </small>
      </label>
      {proposal.labels.length > 1 && !isTarget && (
        <button type="button" className="link" aria-pressed={isExcluded} onClick={toggle}>
          {isExcluded ? "put back in" : "leave out"}
        </button>
      )}
      <ul className="proposal-pictures" aria-label={`Pictures of ${label.name}`}>
        {label.pictures.map((picture) => (
          <li key={picture.id}>
            <button type="button" className="tile" onClick={() => openDialog("item", picture.id)}>
              <img src={getThumbnailUrl(picture, 256)} alt={`Picture ${formatNumber(picture.id)}`} decoding="async" />
            </button>
          </li>
        ))}
        {label.pictures.length === 0 && <li className="quiet">{label.items ? "" : "No picture has it."}</li>}
      </ul>
    </div>
  );
}

function ProposalReasons({ proposal }: { proposal: MergeProposal }): ReactNode {
  return (
    <section className="proposal-reasons" aria-label="What speaks for it and against">
      {proposal.reasons.map((reason) => (
        <div key={`${reason.first} ${reason.second}`}>
          <h3>
            {reason.first}, {reason.second} <Bar value={reason.score} />
          </h3>
          <ul>
            {reason.evidence.map((item) => (
              <li key={item.kind} className={item.weight < 0 ? "against" : "for"}>
                <span aria-hidden="true">{item.weight < 0 ? "−" : "+"}</span>
                <span className="sr">{item.weight < 0 ? "against: " : "for: "}</span>
                {item.message}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}
