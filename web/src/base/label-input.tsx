/** A field for a label, completed from the labels of all languages and their synonyms. */

import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { api } from "../api/client";
import type { LabelCompletion } from "../api/types";
import { formatNumber } from "./format";
import { useLoad, useDebounced } from "./loading";

const MAX_COMPLETIONS = 8;

interface Props {
  name: string; // accessible name
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
  onPick: (label: string) => void;
  allowsNew?: boolean; // labels that do not exist yet are allowed
  parseTerm?: (text: string) => SearchTerm; // finds the term of a longer text that is completed
  onEnter?: (text: string) => void; // Enter without a choice, with `parseTerm`
  autoFocus?: boolean;
  onEscape?: () => void;
}

export interface SearchTerm {
  text: string;
  complete: (label: string) => string; // returns the whole text with the label in the term's place
}

export function LabelInput(props: Props): ReactNode {
  const { name, placeholder, value, onChange, onPick, allowsNew, autoFocus, onEscape, parseTerm, onEnter } = props;
  const id = useId();
  const [isOpen, setIsOpen] = useState(false);
  const [index, setIndex] = useState(-1);
  const term = parseTerm?.(value);
  const prefix = term ? term.text : value.trim();
  const debouncedPrefix = useDebounced(prefix, 120);
  const completions = useLoad(isOpen ? `labels ${debouncedPrefix}` : null, (signal) => api.completeLabels(debouncedPrefix, MAX_COMPLETIONS, signal));
  const matches = completions.value?.labels ?? [];
  const isStale = debouncedPrefix !== prefix || completions.isLoading; // the matches belong to an earlier prefix
  const isExpanded = isOpen && matches.length > 0 && (!term || term.text !== "");
  const complete = (label: string): void => {
    setIsOpen(false);
    setIndex(-1);
    onPick(term ? term.complete(label) : label);
  };
  const chooseMatch = (candidates: readonly LabelCompletion[]): void => {
    const exactMatch = candidates.find((hit) => hit.name === prefix) ?? candidates.find((hit) => hit.name.toLowerCase() === prefix.toLowerCase());
    const chosenName = exactMatch?.name ?? (allowsNew ? prefix : candidates[0]?.name);
    if (chosenName) complete(chosenName);
  };
  const completeNow = async (field: HTMLInputElement): Promise<void> => {
    const labels = await api.completeLabels(prefix, MAX_COMPLETIONS).then((answer) => answer.labels, () => []);
    if (field.isConnected && field.value === value) chooseMatch(labels);
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setIsOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setIndex((previous) => Math.max(-1, Math.min(matches.length - 1, previous + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const markedName = isExpanded ? matches[index]?.name : undefined;
      if (parseTerm && !markedName) {
        setIsOpen(false);
        onEnter?.(value);
        return;
      }
      if (markedName) complete(markedName);
      else if (!prefix) setIsOpen(false);
      else if (isStale && !allowsNew) void completeNow(event.currentTarget as HTMLInputElement);
      else chooseMatch(matches);
    } else if (event.key === "Escape" && (isExpanded || onEscape)) {
      event.preventDefault();
      event.stopPropagation();
      if (isExpanded) setIsOpen(false);
      else onEscape?.();
    }
  };
  return (
    <div className="combo">
      <input
        type="text"
        role="combobox"
        aria-label={name}
        aria-expanded={isExpanded}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={isExpanded && index >= 0 ? `${id}${index}` : undefined}
        placeholder={placeholder}
        value={value}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        ref={(node) => {
          if (node && autoFocus && !node.dataset["begun"]) {
            node.dataset["begun"] = "1";
            node.focus();
          }
        }}
        onChange={(event) => {
          onChange(event.target.value);
          setIsOpen(true);
          setIndex(-1);
        }}
        onFocus={() => setIsOpen(true)}
        onBlur={() => setIsOpen(false)}
        onKeyDown={handleKey}
      />
      <ul id={`${id}list`} role="listbox" aria-label={`${name}: found`} className="choices" hidden={!isExpanded}>
        {matches.map((hit, i) => (
          <li
            key={hit.id}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === index}
            onPointerDown={(event) => {
              event.preventDefault();
              complete(hit.name);
            }}
          >
            <span>{hit.name}</span>
            {hit.synonym && <small>{hit.synonym}</small>}
            <small className="completion-facts" aria-hidden="true">
              {hit.language} {formatNumber(hit.items)}
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}
