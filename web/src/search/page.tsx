/** Page of the search by words or by a picture. */

import { type DragEvent, type ReactNode, useEffect, useState } from "react";
import { api, type ItemConditions } from "../api/client";
import type { CollectionStatus } from "../api/types";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/loading";
import { useShortcuts } from "../base/shortcuts";
import { updateSearchParams, useSearchParams } from "../base/router";
import { useStore } from "../base/store";
import { EmptyState, Icon, ErrorMessage } from "../base/components";
import { FilterPanel } from "../gallery/filter-panel";
import { buildConditions, countFilters } from "../gallery/filters";
import { siblingItems } from "../item/sibling-items";
import { PictureResults, queryPicture, searchWithFile } from "./picture-search";
import { ResultGroups } from "./results";
import { parseLastTerm, quoteLabel } from "./query-text";

export function SearchPage({ facts }: { facts: CollectionStatus | null }): ReactNode {
  const params = useSearchParams();
  const text = params.get("text") ?? "";
  const byPicture = params.get("by") === "picture";
  const picture = useStore(queryPicture);
  const [showsFilters, setShowsFilters] = useState(false);
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
      <SearchBar text={text} filterCount={countFilters(params)} showsFilters={showsFilters} onFilter={() => setShowsFilters(!showsFilters)} />
      {byPicture && picture ? (
        <PictureResults key={picture.key} picture={picture} />
      ) : (
        <div className="gallery-main">
          {showsFilters && <FilterPanel params={params} facts={facts} isSearch onClose={() => setShowsFilters(false)} />}
          <div className="gallery-list">{text ? <TextResults text={text} conditions={buildConditions(params)} /> : <SearchStart />}</div>
        </div>
      )}
    </section>
  );
}

interface SearchBarProps {
  text: string;
  filterCount: number;
  showsFilters: boolean;
  onFilter: () => void;
}

function SearchBar({ text, filterCount, showsFilters, onFilter }: SearchBarProps): ReactNode {
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
      <button type="button" aria-label="Filters" aria-expanded={showsFilters} onClick={onFilter}>
        <Icon name="filter" /> <span className="wide">Filters{filterCount > 0 ? ` (${filterCount})` : ""}</span>
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
        Labels in any language, or other words; <kbd>-word</kbd> leaves something out. Or drop a picture here.
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

function TextResults({ text, conditions }: { text: string; conditions: ItemConditions }): ReactNode {
  const results = useLoad(`search ${text} ${JSON.stringify(conditions)}`, (signal) => api.search(text, 24, conditions, signal));
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
