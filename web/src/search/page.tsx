/** Page of the search by words or by a picture. */

import { type DragEvent, type ReactNode, useEffect, useState } from "react";
import { api } from "../api/client";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/loading";
import { useShortcuts } from "../base/shortcuts";
import { updateSearchParams, useSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { EmptyState, Icon, ErrorMessage } from "../base/components";
import { siblingItems } from "../item/sibling-items";
import { PictureResults, queryPicture, searchWithFile } from "./picture-search";
import { ResultGroups } from "./results";
import { parseLastTerm, quoteLabel } from "./query-text";

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
