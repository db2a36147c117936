/** The labels of the collection: which there are, how they hang together, which could be one. */

import { type ReactNode } from "react";
import { ask, useAsked } from "../base/router";
import { WordsField } from "../base/words-field";
import { Empty } from "../base/ui";
import { useMayWrite } from "../decisions/may";
import { Detail } from "./detail";
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
  const asked = useAsked();
  const view = asked.get("view");
  const label = Number(asked.get("label")) || null;
  const mayWrite = useMayWrite();
  return (
    <section className={`page labels ${label && view !== "proposals" ? "one-open" : ""}`} aria-label="Labels">
      <h1 className="sr">Labels</h1>
      <div className="toolbar labels-bar">
        <div className="segments" role="group" aria-label="View">
          {VIEWS.map((one) => (
            <button
              key={one.name}
              type="button"
              aria-pressed={view === one.view}
              onClick={() => ask({ view: one.view, ...(one.view === "proposals" ? { label: null } : {}) })}
            >
              {one.name}
            </button>
          ))}
        </div>
        {view !== "proposals" && view !== "tree" && <Filter asked={asked} />}
      </div>
      {view === "proposals" ? (
        <ProposalsView mayWrite={mayWrite} />
      ) : (
        <div className="labels-main">
          {view === "tree" ? <LabelTree chosen={label} /> : <LabelList chosen={label} asked={asked} />}
          {label ? (
            <Detail key={label} id={label} mayWrite={mayWrite} />
          ) : (
            <Empty title="Choose a label">
              <p>
                Its pictures, names, neighbours and figures are shown here. <kbd>j</kbd> and <kbd>k</kbd> go through the
                list.
              </p>
            </Empty>
          )}
        </div>
      )}
    </section>
  );
}

function Filter({ asked }: { asked: URLSearchParams }): ReactNode {
  return (
    <>
      <WordsField
        name="Filter labels by words"
        placeholder="Words in any name"
        value={asked.get("words") ?? ""}
        onWords={(words, left) => ask({ words, ...(left ? {} : { label: null }) })}
      />
      <label className="field-inline">
        <span className="wide">Order</span>
        <select aria-label="Order" value={asked.get("order") ?? "items"} onChange={(event) => ask({ order: event.target.value === "items" ? null : event.target.value })}>
          <option value="items">Most frequent</option>
          <option value="name">Name</option>
          <option value="accuracy">Models are wrong most</option>
        </select>
      </label>
    </>
  );
}
