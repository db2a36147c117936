/** The labels of the collection: list, hierarchy, merge proposals. */

import { type ReactNode } from "react";
import { updateSearchParams, useSearchParams } from "../base/router";
import { FilterField } from "../base/filter-field";
import { EmptyState } from "../base/components";
import { useWritePermission } from "../decisions/write-permission";
import { LabelDetail } from "./detail";
import { LabelList } from "./list";
import { ProposalsView } from "./proposals";
import { LabelTree } from "./tree";
import "./labels.css";

const VIEWS = [
  { view: null, name: "List" },
  { view: "tree", name: "Tree" },
  { view: "proposals", name: "Proposals" },
] as const;

export function LabelsPage(): ReactNode {
  const params = useSearchParams();
  const view = params.get("view");
  const label = Number(params.get("label")) || null;
  const canWrite = useWritePermission();
  return (
    <section className={`page labels ${label && view !== "proposals" ? "label-open" : ""}`} aria-label="Labels">
      <h1 className="sr">Labels</h1>
      <div className="toolbar labels-bar">
        <div className="segments" role="group" aria-label="View">
          {VIEWS.map((option) => (
            <button
              key={option.name}
              type="button"
              aria-pressed={view === option.view}
              onClick={() => updateSearchParams({ view: option.view, ...(option.view === "proposals" ? { label: null } : {}) })}
            >
              {option.name}
            </button>
          ))}
        </div>
        {view !== "proposals" && view !== "tree" && <Filter params={params} />}
      </div>
      {view === "proposals" ? (
        <ProposalsView canWrite={canWrite} />
      ) : (
        <div className="labels-main">
          {view === "tree" ? <LabelTree selectedId={label} /> : <LabelList selectedId={label} params={params} />}
          {label ? (
            <LabelDetail key={label} id={label} canWrite={canWrite} />
          ) : (
            <EmptyState title="Choose a label">
              <p>
                Its pictures, names, neighbours and figures are shown here. <kbd>j</kbd> and <kbd>k</kbd> go through the
                list.
              </p>
            </EmptyState>
          )}
        </div>
      )}
    </section>
  );
}

function Filter({ params }: { params: URLSearchParams }): ReactNode {
  return (
    <>
      <FilterField
        name="Filter labels by words"
        placeholder="Words in any name"
        value={params.get("words") ?? ""}
        onFilter={(words, isBlur) => updateSearchParams({ words, ...(isBlur ? {} : { label: null }) })}
      />
      <label className="field-inline">
        <span className="wide">Order</span>
        <select aria-label="Order" value={params.get("order") ?? "items"} onChange={(event) => updateSearchParams({ order: event.target.value === "items" ? null : event.target.value })}>
          <option value="items">Most frequent</option>
          <option value="name">Name</option>
          <option value="accuracy">Lowest accuracy</option>
        </select>
      </label>
    </>
  );
}
