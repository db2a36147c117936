/** The filters of the gallery beside the pictures, or above them on a phone. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { LabelCount } from "../api/types";
import { number } from "../base/format";
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

export function Filters({ asked, onClose }: { asked: URLSearchParams; onClose: () => void }): ReactNode {
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
      <LabelFilter key={now("label")} label={now("label")} often={facets?.labels.slice(0, 12) ?? []} />
      <Choice
        name="The label is"
        of="state"
        value={now("state") || "accepted"}
        choices={STATES}
        disabled={!now("label")}
      />
      <fieldset disabled={!suggestedOnly(asked)}>
        <legend>Suggested with a probability of, %</legend>
        <Edge key={`min${now("min")}`} name="min" told="At least" value={now("min")} />
        <Edge key={`max${now("max")}`} name="max" told="At most" value={now("max")} />
      </fieldset>
      <label className="check-line">
        <input type="checkbox" checked={now("untagged") !== ""} onChange={(e) => ask({ untagged: e.target.checked })} />
        <span>Without any tag</span>
      </label>
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

function LabelFilter({ label, often }: { label: string; often: LabelCount[] }): ReactNode {
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
      <div className="chips">
        {often.map((l) => (
          <button
            key={l.id}
            type="button"
            className="chip"
            aria-pressed={l.label === label}
            onClick={() => ask({ label: l.label === label ? null : l.label })}
          >
            {l.label} <small>{number(l.accepted)}</small>
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
  disabled?: boolean;
}

function Choice({ name, of, value, choices, disabled = false }: ChoiceProps): ReactNode {
  return (
    <fieldset disabled={disabled}>
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
