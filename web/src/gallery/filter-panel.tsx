/** The filters of the gallery beside the pictures, or above them on a phone. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import { number } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/load";
import { ask } from "../base/router";
import { Icon } from "../base/ui";
import { filtersSet, NO_FILTERS } from "./filters";

const STATES = [
  { value: "", name: "Any" },
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
      <Choice name="State" of="state" value={now("state")} choices={STATES} />
      <fieldset>
        <legend>Probability, %</legend>
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
          {(facets?.folders ?? []).map((f) => (
            <option key={f.folder} value={f.folder}>
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

interface Often {
  id: number;
  name: string;
  accepted: number;
}

function LabelFilter({ label, often }: { label: string; often: Often[] }): ReactNode {
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
