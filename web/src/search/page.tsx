/** Search by words, by a picture, or by a part of one. */

import { type DragEvent, type ReactNode, useEffect, useState } from "react";
import { api } from "../api/client";
import type { LabelScore } from "../api/types";
import { formatPercent } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/loading";
import { useShortcuts } from "../base/shortcuts";
import { updateSearchParams, useSearchParams } from "../base/router";
import { createStore, useStore } from "../base/store";
import { EmptyState, Icon, ErrorMessage } from "../base/components";
import { type Box, formatRegion } from "../item/region-box";
import { siblingItems } from "../item/sibling-items";
import { Picture } from "../item/picture";
import { notify } from "../base/notifications";
import { ResultGrid, ResultGroups } from "./results";
import { parseLastTerm, quoteLabel } from "./query-text";

interface QueryPicture {
  file: File;
  src: string;
  key: number;
}

/** Survives a change of the page; a file cannot be part of an address. */
const queryPicture = createStore<QueryPicture | null>(null);
let dropCount = 0;

function searchWithFile(file: File | null | undefined): void {
  if (!file) return;
  if (!file.type.startsWith("image/")) {
    notify("Only a picture can be searched with.");
    return;
  }
  const previous = queryPicture.get();
  if (previous) URL.revokeObjectURL(previous.src);
  queryPicture.set({ file, src: URL.createObjectURL(file), key: (dropCount += 1) });
  updateSearchParams({ text: null, by: "picture" });
}

export function SearchPage(): ReactNode {
  const params = useSearchParams();
  const text = params.get("text") ?? "";
  const byPicture = params.get("by") === "picture";
  const picture = useStore(queryPicture);
  const [isDraggedOver, setIsDraggedOver] = useState(false);
  const trackDrag = (event: DragEvent, isOver: boolean): void => {
    event.preventDefault();
    setIsDraggedOver(isOver);
  };
  useShortcuts([
    {
      keys: ["/"],
      description: "Type a search",
      run: () => document.querySelector<HTMLInputElement>(".search-bar input")?.focus(),
    },
  ]);
  useEffect(() => {
    const handlePaste = (event: ClipboardEvent): void => searchWithFile(event.clipboardData?.files[0]);
    window.addEventListener("paste", handlePaste);
    return () => window.removeEventListener("paste", handlePaste);
  }, []);
  return (
    <section
      className={`page search ${isDraggedOver ? "drag-over" : ""}`}
      aria-label="Search"
      onDragOver={(event) => trackDrag(event, true)}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setIsDraggedOver(false);
      }}
      onDrop={(event) => {
        trackDrag(event, false);
        searchWithFile(event.dataTransfer.files[0]);
      }}
    >
      <h1 className="sr">Search</h1>
      <SearchBar text={text} />
      {byPicture && picture ? (
        <PictureResults key={picture.key} picture={picture} />
      ) : text ? (
        <TextResults text={text} />
      ) : (
        <SearchStart />
      )}
    </section>
  );
}

function SearchBar({ text }: { text: string }): ReactNode {
  const [value, setValue] = useState(text);
  const [shownText, setShownText] = useState(text);
  if (shownText !== text) {
    setShownText(text);
    setValue(text);
  }
  const run = (next: string): void => updateSearchParams({ text: next.trim(), by: null });
  return (
    <div className="search-bar" role="search">
      <LabelInput
        name="Search"
        placeholder="harbour boat -person"
        value={value}
        onChange={setValue}
        onPick={setValue}
        parseTerm={parseLastTerm}
        onEnter={run}
        autoFocus={!text && matchMedia("(hover: hover)").matches}
      />
      <button type="button" className="primary" onClick={() => run(value)} aria-label="Search">
        <Icon name="search" />
      </button>
      <label className="button" title="Search with a picture: choose, drop or paste one">
        <Icon name="picture" />
        <span className="wide">Picture</span>
        <input
          type="file"
          accept="image/*"
          className="sr"
          aria-label="Search with a picture"
          onChange={(event) => {
            searchWithFile(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
      </label>
    </div>
  );
}

function SearchStart(): ReactNode {
  const frequentLabels = useLoad("facets", api.getFacets).value?.labels.slice(0, 18) ?? [];
  return (
    <EmptyState title="What are you looking for?">
      <p>
        Words in any language of the labels; <kbd>-word</kbd> leaves something out. Or drop a picture here.
      </p>
      <div className="chips center">
        {frequentLabels.map((l) => (
          <button key={l.id} type="button" className="chip" onClick={() => updateSearchParams({ text: quoteLabel(l.name) })}>
            {l.name}
          </button>
        ))}
      </div>
    </EmptyState>
  );
}

function TextResults({ text }: { text: string }): ReactNode {
  const results = useLoad(`search ${text}`, (signal) => api.search(text, 24, signal));
  const groups = results.value?.groups;
  useEffect(() => siblingItems.set((groups ?? []).flatMap((group) => group.items)), [groups]);
  if (results.error) return <ErrorMessage error={results.error} onRetry={results.reload} />;
  if (!results.value || !groups) return <div className="search-results" aria-busy="true" />;
  const { labels, excluded, notes } = results.value;
  return (
    <div className={`search-results ${results.isLoading ? "stale" : ""}`}>
      <p className="query-summary" aria-live="polite">
        {labels.length + excluded.length > 0 ? (
          <>
            Understood as{" "}
            {labels.map((label) => (
              <span key={label} className="chip static">
                {label}
              </span>
            ))}
            {excluded.map((label) => (
              <span key={label} className="chip static excluded">
                not {label}
              </span>
            ))}
          </>
        ) : (
          "No label is called that."
        )}{" "}
        <small>{notes.join("; ")}</small>
      </p>
      {groups.length ? (
        <ResultGroups groups={groups} />
      ) : (
        <EmptyState title="Nothing found">
          <p>Try another word, or a picture.</p>
        </EmptyState>
      )}
    </div>
  );
}

function PictureResults({ picture }: { picture: QueryPicture }): ReactNode {
  const [box, setBox] = useState<Box | null>(null);
  const region = box ? formatRegion(box) : null;
  const results = useLoad(`picture ${picture.key} ${region}`, (signal) =>
    api.searchByPicture(picture.file, region, 48, signal),
  );
  const items = results.value?.items;
  useEffect(() => siblingItems.set(items ?? []), [items]);
  return (
    <div className="by-picture">
      <aside aria-label="The picture searched with">
        <Picture src={picture.src} name="The picture searched with" ratio={null} isDrawing box={box} onBox={setBox} />
        <p className="quiet">
          {box ? (
            <>
              Only the box counts.{" "}
              <button type="button" className="link" onClick={() => setBox(null)}>
                The whole picture
              </button>
            </>
          ) : (
            "Draw a box to search with a part of it."
          )}
        </p>
        <div className="chips">
          {selectMostProbable(results.value?.labels ?? []).map((l) => (
            <button key={l.label} type="button" className="chip" onClick={() => updateSearchParams({ text: quoteLabel(l.label), by: null })}>
              {l.label} {l.probability !== null && <small>{formatPercent(l.probability)}</small>}
            </button>
          ))}
        </div>
        <button
          type="button"
          onClick={() => {
            URL.revokeObjectURL(picture.src);
            queryPicture.set(null);
            updateSearchParams({ by: null });
          }}
        >
          Close
        </button>
      </aside>
      <div className={`search-results ${results.isLoading ? "stale" : ""}`} aria-busy={results.isLoading}>
        {results.error && <ErrorMessage error={results.error} onRetry={results.reload} />}
        {items && <ResultGrid items={items} name="Most like it" />}
      </div>
    </div>
  );
}

/** Select the eight most probable labels; the model sorts by score, which is another order. */
function selectMostProbable(labels: LabelScore[]): LabelScore[] {
  return labels.toSorted((a, b) => (b.probability ?? 0) - (a.probability ?? 0)).slice(0, 8);
}
