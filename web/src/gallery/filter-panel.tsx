/** The filters of the gallery beside the pictures, or above them on a phone. */

import { type ReactNode, useState } from "react";
import { api } from "../api/client";
import type { CollectionStatus, LabelFacet } from "../api/types";
import { formatNumber, formatPercent } from "../base/format";
import { FilterField } from "../base/filter-field";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/loading";
import { updateSearchParams } from "../base/router";
import { Icon } from "../base/components";
import { countFilters, NO_FILTERS, isSuggestionList } from "./filters";

const STATES = [
  { value: "accepted", name: "Accepted" },
  { value: "suggested", name: "Suggested" },
  { value: "rejected", name: "Rejected" },
];
const FILE_STATES = [
  { value: "", name: "There" },
  { value: "missing", name: "Missing" },
  { value: "unreadable", name: "Unreadable" },
];

interface FilterPanelProps {
  params: URLSearchParams;
  facts: CollectionStatus | null;
  isSearch?: boolean; // only pictures that are there are found
  onClose: () => void;
}

export function FilterPanel({ params, facts, isSearch, onClose }: FilterPanelProps): ReactNode {
  const facets = useLoad("facets", api.getFacets).value;
  const read = (name: string): string => params.get(name) ?? "";
  return (
    <aside className="filters" aria-label="Filters">
      <header>
        <h2>Filters</h2>
        <button type="button" className="plain" aria-label="Close filters" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <LabelFilter key={read("label")} label={read("label")} frequentLabels={facets?.labels.slice(0, 12) ?? null} />
      {read("label") && <ChoiceFilter name="The label is" param="state" value={read("state") || "accepted"} choices={STATES} />}
      {isSuggestionList(params) && (
        <fieldset>
          <legend>Suggested with a probability of, %</legend>
          <ProbabilityField key={`min${read("min")}`} name="min" title="At least" value={read("min")} />
          <ProbabilityField key={`max${read("max")}`} name="max" title="At most" value={read("max")} />
        </fieldset>
      )}
      <label className="check-line">
        <input type="checkbox" checked={read("untagged") !== ""} onChange={(e) => updateSearchParams({ untagged: e.target.checked })} />
        <span>Without any tag</span>
      </label>
      {facts && facts.thresholds && facts.thresholds.length > 0 && (
        <div className="field">
          <ChoiceFilter name="No tag fits" param="unfit" value={read("unfit")} choices={listPrecisions(facts.thresholds)} />
          <small>No tags, and no suggestion that is right this often.</small>
        </div>
      )}
      <label className="field">
        <span>Folder</span>
        <select value={read("folder")} onChange={(event) => updateSearchParams({ folder: event.target.value })}>
          <option value="">All</option>
          {(facets?.folders ?? []).map((f, i) => (
            <option key={i} value={f.folder}>
              {f.folder || "(top)"} · {formatNumber(f.items)}
            </option>
          ))}
        </select>
      </label>
      <fieldset>
        <legend>Taken</legend>
        <DateField name="from" title="From" value={read("from")} />
        <DateField name="to" title="To" value={read("to")} />
      </fieldset>
      {isSearch ? (
        <FilterField name="Words in the file names" placeholder="File names" value={read("words")} onFilter={(words) => updateSearchParams({ words })} />
      ) : (
        <ChoiceFilter name="Files" param="presence" value={read("presence")} choices={FILE_STATES} />
      )}
      <button type="button" disabled={countFilters(params) === 0} onClick={() => updateSearchParams(NO_FILTERS)}>
        Clear all
      </button>
    </aside>
  );
}

/** List the precisions that a filter can require. */
function listPrecisions(thresholds: { precision: number }[]): { value: string; name: string }[] {
  const options = thresholds.map((t) => ({ value: String(Math.round(100 * t.precision)), name: formatPercent(t.precision) }));
  return [{ value: "", name: "Any" }, ...options];
}

/** `frequentLabels` is null while loading; its space is reserved, so that nothing moves. */
function LabelFilter({ label, frequentLabels }: { label: string; frequentLabels: LabelFacet[] | null }): ReactNode {
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
          if (next === "" && label) updateSearchParams({ label: null });
        }}
        onPick={(name) => updateSearchParams({ label: name })}
      />
      <div className={`chips ${frequentLabels ? "" : "loading"}`} aria-busy={!frequentLabels}>
        {frequentLabels?.map((l) => (
          <button
            key={l.id}
            type="button"
            className="chip"
            aria-pressed={l.name === label}
            onClick={() => updateSearchParams({ label: l.name === label ? null : l.name })}
          >
            {l.name} <small>{formatNumber(l.accepted)}</small>
          </button>
        ))}
      </div>
    </div>
  );
}

interface ChoiceFilterProps {
  name: string;
  param: string;
  value: string;
  choices: { value: string; name: string }[];
}

function ChoiceFilter({ name, param, value, choices }: ChoiceFilterProps): ReactNode {
  return (
    <fieldset>
      <legend>{name}</legend>
      <div className="segments">
        {choices.map((c) => (
          <button key={c.value} type="button" aria-pressed={c.value === value} onClick={() => updateSearchParams({ [param]: c.value })}>
            {c.name}
          </button>
        ))}
      </div>
    </fieldset>
  );
}

function ProbabilityField({ name, title, value }: { name: string; title: string; value: string }): ReactNode {
  return (
    <label className="field-inline">
      <span>{title}</span>
      <input
        type="number"
        min={0}
        max={100}
        inputMode="numeric"
        defaultValue={value}
        onBlur={(event) => updateSearchParams({ [name]: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") updateSearchParams({ [name]: event.currentTarget.value });
        }}
      />
    </label>
  );
}

function DateField({ name, title, value }: { name: string; title: string; value: string }): ReactNode {
  return (
    <label className="field-inline">
      <span>{title}</span>
      <input type="date" value={value} onChange={(event) => updateSearchParams({ [name]: event.target.value }, { replace: true })} />
    </label>
  );
}
