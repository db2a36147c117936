/** The filters of the gallery beside the pictures, or above them on a phone. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus, LabelFacet } from "../api/types";
import { number, percent } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/load";
import { ask } from "../base/router";
import { Icon } from "../base/ui";
import { filtersSet, NO_FILTERS, suggestedOnly } from "./filters";

const STATES = [
  { value: "accepted", name: "Accepted" },
  { value: "suggested", name: "Suggested" },
  { value: "rejected", name: "Rejected" },
];
const PRESENCE = [
  { value: "", name: "There" },
  { value: "missing", name: "Missing" },
  { value: "unreadable", name: "Unreadable" },
];

interface FiltersProps {
  asked: URLSearchParams;
  facts: CollectionStatus | null;
  onClose: () => void;
}

export function Filters({ asked, facts, onClose }: FiltersProps): ReactNode {
  const facets = useLoad("facets", api.facets).value;
  const now = (name: string): string => asked.get(name) ?? "";
  return (
    <aside className="filters" aria-label="Filters">
      <header>
        <h2>Filters</h2>
        <button type="button" className="plain" aria-label="Close filters" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <LabelFilter key={now("label")} label={now("label")} often={facets?.labels.slice(0, 12) ?? null} />
      {now("label") && <Choice name="The label is" of="state" value={now("state") || "accepted"} choices={STATES} />}
      {suggestedOnly(asked) && (
        <fieldset>
          <legend>Suggested with a probability of, %</legend>
          <Edge key={`min${now("min")}`} name="min" told="At least" value={now("min")} />
          <Edge key={`max${now("max")}`} name="max" told="At most" value={now("max")} />
        </fieldset>
      )}
      <label className="check-line">
        <input type="checkbox" checked={now("untagged") !== ""} onChange={(e) => ask({ untagged: e.target.checked })} />
        <span>Without any tag</span>
      </label>
      {facts && facts.thresholds && facts.thresholds.length > 0 && (
        <div className="field">
          <Choice name="No tag fits" of="unfit" value={now("unfit")} choices={unfitting(facts.thresholds)} />
          <small>Untagged, and no suggestion is right this often.</small>
        </div>
      )}
      <label className="field">
        <span>Folder</span>
        <select value={now("folder")} onChange={(event) => ask({ folder: event.target.value })}>
          <option value="">All</option>
          {(facets?.folders ?? []).map((f, i) => (
            <option key={i} value={f.folder}>
              {f.folder || "(top)"} · {number(f.items)}
            </option>
          ))}
        </select>
      </label>
      <fieldset>
        <legend>Taken</legend>
        <Day name="from" told="From" value={now("from")} />
        <Day name="to" told="To" value={now("to")} />
      </fieldset>
      <Choice name="Files" of="presence" value={now("presence")} choices={PRESENCE} />
      <button type="button" disabled={filtersSet(asked) === 0} onClick={() => ask(NO_FILTERS)}>
        Clear all
      </button>
    </aside>
  );
}

/** How often suggestions have to be right. */
function unfitting(thresholds: { precision: number }[]): { value: string; name: string }[] {
  const usual = thresholds.map((t) => ({ value: String(Math.round(100 * t.precision)), name: percent(t.precision) }));
  return [{ value: "", name: "Any" }, ...usual];
}

/** `often` is null while it is asked for: its place is kept free, so that nothing jumps. */
function LabelFilter({ label, often }: { label: string; often: LabelFacet[] | null }): ReactNode {
  const [text, setText] = useState(label);
  return (
    <div className="field">
      <span>Label</span>
      <LabelInput
        name="Filter by label"
        placeholder="Any"
        value={text}
        onChange={(next) => {
          setText(next);
          if (next === "" && label) ask({ label: null });
        }}
        onPick={(picked) => ask({ label: picked })}
      />
      <div className={`chips ${often ? "" : "awaited"}`} aria-busy={!often}>
        {often?.map((l) => (
          <button
            key={l.id}
            type="button"
            className="chip"
            aria-pressed={l.name === label}
            onClick={() => ask({ label: l.name === label ? null : l.name })}
          >
            {l.name} <small>{number(l.accepted)}</small>
          </button>
        ))}
      </div>
    </div>
  );
}

interface ChoiceProps {
  name: string;
  of: string;
  value: string;
  choices: { value: string; name: string }[];
}

function Choice({ name, of, value, choices }: ChoiceProps): ReactNode {
  return (
    <fieldset>
      <legend>{name}</legend>
      <div className="segments">
        {choices.map((c) => (
          <button key={c.value} type="button" aria-pressed={c.value === value} onClick={() => ask({ [of]: c.value })}>
            {c.name}
          </button>
        ))}
      </div>
    </fieldset>
  );
}

function Edge({ name, told, value }: { name: string; told: string; value: string }): ReactNode {
  return (
    <label className="field-inline">
      <span>{told}</span>
      <input
        type="number"
        min={0}
        max={100}
        inputMode="numeric"
        defaultValue={value}
        onBlur={(event) => ask({ [name]: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") ask({ [name]: event.currentTarget.value });
        }}
      />
    </label>
  );
}

function Day({ name, told, value }: { name: string; told: string; value: string }): ReactNode {
  return (
    <label className="field-inline">
      <span>{told}</span>
      <input type="date" value={value} onChange={(event) => ask({ [name]: event.target.value }, { replace: true })} />
    </label>
  );
}
