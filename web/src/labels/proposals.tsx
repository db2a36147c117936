/** Labels that could be one, gone through by keys: what speaks for it, and pictures of both sides. */

import { type ReactNode, useEffect, useState } from "react";
import { thumbnail } from "../api/client";
import { labelApi } from "../api/labels";
import type { IllustratedLabel, MergeProposal, ProposalPage } from "../api/types";
import { ago, count, number, percent } from "../base/format";
import { useKeys } from "../base/keys";
import { useLoad } from "../base/load";
import { openOver } from "../base/router";
import { useStore } from "../base/store";
import { Bar, Empty, Icon, Trouble } from "../base/ui";
import { undo } from "../decisions/desk";
import { listed } from "../item/listed";
import { collectionTurn } from "../shell/collection";
import { say } from "../base/saying";
import { startJob, underWay, useJobs } from "../status/jobs";
import { change } from "./work";

const AT_ONCE = 20;
const NOT_ASKED: Record<string, string> = { knowledge: "knowledge of words", model: "a model" };

/** What was chosen of a proposal: which label stays, which are left out. */
interface Choice {
  into: number;
  without: ReadonlySet<number>;
}

function keyOf(proposal: MergeProposal): string {
  return [proposal.target, ...proposal.labels].map((label) => label.id).join(" ");
}

export function ProposalsView({ mayWrite }: { mayWrite: boolean }): ReactNode {
  const turn = useStore(collectionTurn);
  const [at, setAt] = useState(0);
  const [choices, setChoices] = useState<ReadonlyMap<string, Choice>>(new Map());
  const [busy, setBusy] = useState(false);
  const page = Math.floor(at / AT_ONCE);
  const found = useLoad(`proposals ${turn} ${page}`, (signal) => labelApi.proposals(page * AT_ONCE, AT_ONCE, signal));
  const total = found.value?.total ?? 0;
  const shown = found.value?.proposals ?? [];
  const place = Math.min(at - page * AT_ONCE, Math.max(shown.length - 1, 0));
  const current = shown[place];
  const key = current ? keyOf(current) : "";
  const choice = choices.get(key) ?? { into: current?.target.id ?? 0, without: new Set<number>() };
  const to = (next: number): void => setAt(Math.max(0, Math.min(total - 1, next)));
  const choose = (part: Partial<Choice>): void => setChoices((old) => new Map(old).set(key, { ...choice, ...part }));

  const decide = async (what: "merge" | "apart"): Promise<void> => {
    if (!current || !mayWrite || busy || found.busy) return;
    const all = [current.target, ...current.labels].filter((label) => !choice.without.has(label.id));
    const into = all.find((label) => label.id === choice.into);
    const rest = all.filter((label) => label.id !== choice.into);
    if (!into || !rest.length) {
      say("Leave two labels or more in.");
      return;
    }
    setBusy(true);
    const names = rest.map((label) => `“${label.name}”`).join(", ");
    const refused =
      what === "merge"
        ? await change(labelApi.merge(rest.map((label) => label.id), into.id), `Merged ${names} into “${into.name}”`)
        : await change(labelApi.apart(all.map((label) => label.id)), `Kept apart: “${into.name}”, ${names}`);
    setBusy(false);
    if (refused !== null) {
      say(refused);
      found.again();
    }
  };
  useKeys([
    { keys: ["j", "ArrowDown"], told: "Next proposal", run: () => to(at + 1) },
    { keys: ["k", "ArrowUp"], told: "Proposal before", run: () => to(at - 1) },
    { keys: ["a"], told: "Merge", run: () => void decide("merge") },
    { keys: ["x"], told: "Keep apart", run: () => void decide("apart") },
    { keys: ["z"], told: "Undo", run: undo },
  ]);
  const pictures = current && [current.target, ...current.labels].flatMap((label) => label.pictures);
  useEffect(() => listed.set(pictures ?? []), [key]); // eslint-disable-line react-hooks/exhaustive-deps

  if (found.error) return <Trouble error={found.error} again={found.again} />;
  if (!found.value) return <div className="proposals" aria-busy="true" />;
  return (
    <div className={`proposals ${found.busy ? "stale" : ""}`}>
      {found.value.created === null ? (
        <NotCompared mayWrite={mayWrite} />
      ) : (
        <Looked found={found.value} made={found.value.created} mayWrite={mayWrite} />
      )}
      {!current ? (
        found.value.created !== null && <Empty title="Nothing is left to decide" />
      ) : (
        <div className="proposals-main">
          <ol className="proposal-list" aria-label="Proposals" start={page * AT_ONCE + 1}>
            {shown.map((one, i) => (
              <li key={keyOf(one)}>
                <button type="button" aria-current={i === place || undefined} onClick={() => setAt(page * AT_ONCE + i)}>
                  <span className="label-name">
                    {one.labels.map((label) => label.name).join(", ")} → {one.target.name}
                  </span>
                  <small>{percent(one.score)}</small>
                </button>
              </li>
            ))}
          </ol>
          <article className="proposal" aria-label={`Proposal ${at + 1} of ${total}`}>
            <div className="proposal-body">
              <h2>
                Could these be one?{" "}
                <small>
                  {percent(current.score)} sure; {number(page * AT_ONCE + place + 1)} of {number(total)}
                </small>
              </h2>
              <fieldset className="sides">
                <legend>The label that stays</legend>
                {[current.target, ...current.labels].map((label) => (
                  <Side key={label.id} label={label} of={current} choice={choice} onChoose={choose} />
                ))}
              </fieldset>
              <Why proposal={current} />
            </div>
            <div className="one-actions">
              <button type="button" onClick={() => to(at - 1)} aria-label="Proposal before" disabled={at === 0}>
                <Icon name="back" />
              </button>
              <button type="button" onClick={() => to(at + 1)} aria-label="Next proposal" disabled={at >= total - 1}>
                <Icon name="next" />
              </button>
              <button type="button" disabled={!mayWrite || busy} onClick={() => void decide("apart")}>
                Keep apart
              </button>
              <button type="button" className="primary" disabled={!mayWrite || busy} onClick={() => void decide("merge")}>
                Merge
              </button>
            </div>
          </article>
        </div>
      )}
    </div>
  );
}

/** When somebody looked, and looking again. */
function Looked({ found, made, mayWrite }: { found: ProposalPage; made: string; mayWrite: boolean }): ReactNode {
  return (
    <div className="looked" aria-live="polite">
      <p>
        <strong>{count(found.total, "proposal")}</strong>{" "}
        <small>
          compared {ago(made)}
          {found.changes > 0 && `, ${count(found.changes, "change")} since`}
          {found.is_other_model && !found.unused_sources["model"] && ", by another model than the one in use"}
          {Object.entries(found.unused_sources).map(([what, why]) => `; ${NOT_ASKED[what] ?? what} was not asked (${why})`)}
          {found.is_other_model && found.unused_sources["model"] && "; there is one in use now: compare again to ask it"}
        </small>
      </p>
      <Compare name="Compare again" mayWrite={mayWrite} />
    </div>
  );
}

function NotCompared({ mayWrite }: { mayWrite: boolean }): ReactNode {
  return (
    <Empty title="Which labels could be one?">
      <p>
        Nobody has compared the labels yet: their spelling, the model’s space, the company they keep. Pairs that look
        alike are then proposed here, and merged or kept apart by you.
      </p>
      <Compare name="Compare labels" className="primary" mayWrite={mayWrite} />
    </Empty>
  );
}

function Compare({ name, className, mayWrite }: { name: string; className?: string; mayWrite: boolean }): ReactNode {
  const job = useJobs().find((one) => one.kind === "tidy" && underWay(one));
  if (job) return <p className="quiet">{job.state === "waiting" ? "Waits for other work (see Status)" : "Comparing …"}</p>;
  return (
    <button type="button" className={className} disabled={!mayWrite} onClick={() => void startJob("tidy")}>
      {name}
    </button>
  );
}

interface SideProps {
  label: IllustratedLabel;
  of: MergeProposal;
  choice: Choice;
  onChoose: (part: Partial<Choice>) => void;
}

function Side({ label, of, choice, onChoose }: SideProps): ReactNode {
  const stays = choice.into === label.id;
  const out = choice.without.has(label.id);
  const toggle = (): void => {
    const without = new Set(choice.without);
    if (!without.delete(label.id)) without.add(label.id);
    onChoose({ without });
  };
  return (
    <div className={`side ${stays ? "stays" : ""} ${out ? "out" : ""}`}>
      <label className="check-line">
        <input type="radio" name={`into ${keyOf(of)}`} checked={stays} disabled={out} onChange={() => onChoose({ into: label.id })} />
        <span className="label-name">{label.name}</span>
        <small>
          {label.language} {count(label.items, "picture")}
        </small>
      </label>
      {of.labels.length > 1 && !stays && (
        <button type="button" className="link" aria-pressed={out} onClick={toggle}>
          {out ? "put back in" : "leave out"}
        </button>
      )}
      <ul className="side-pictures" aria-label={`Pictures of ${label.name}`}>
        {label.pictures.map((picture) => (
          <li key={picture.id}>
            <button type="button" className="tile" onClick={() => openOver("item", picture.id)}>
              <img src={thumbnail(picture, 256)} alt={`Picture ${number(picture.id)}`} decoding="async" />
            </button>
          </li>
        ))}
        {label.pictures.length === 0 && <li className="quiet">{label.items ? "" : "No picture has it."}</li>}
      </ul>
    </div>
  );
}

function Why({ proposal }: { proposal: MergeProposal }): ReactNode {
  return (
    <section className="why" aria-label="What speaks for it and against">
      {proposal.reasons.map((reason) => (
        <div key={`${reason.first} ${reason.second}`}>
          <h3>
            {reason.first}, {reason.second} <Bar value={reason.score} />
          </h3>
          <ul>
            {reason.evidence.map((one) => (
              <li key={one.kind} className={one.weight < 0 ? "against" : "for"}>
                <span aria-hidden="true">{one.weight < 0 ? "−" : "+"}</span>
                <span className="sr">{one.weight < 0 ? "against: " : "for: "}</span>
                {one.message}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}
