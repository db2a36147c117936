/** A field for a label, completed from the labels of all languages and their synonyms. */

import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { api } from "../api/client";
import type { LabelCompletion } from "../api/types";
import { number } from "./format";
import { useLoad, useSettled } from "./load";

const MOST = 8;

interface Props {
  name: string; // what the field is, for those who cannot see it
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
  onPick: (label: string) => void;
  free?: boolean; // labels that are not there yet may be given
  part?: (text: string) => Part; // of a longer text, the part that is completed
  onEnter?: (text: string) => void; // Enter without a choice, where there are parts
  focused?: boolean;
  onEscape?: () => void;
}

export interface Part {
  sought: string;
  put: (label: string) => string; // the whole text with the label in its place
}

export function LabelInput(props: Props): ReactNode {
  const { name, placeholder, value, onChange, onPick, free, focused, onEscape, part, onEnter } = props;
  const id = useId();
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const now = part?.(value);
  const sought = now ? now.sought : value.trim();
  const start = useSettled(sought, 120);
  const found = useLoad(open ? `labels ${start}` : null, (signal) => api.labels(start, MOST, signal));
  const hits = found.value?.labels ?? [];
  const late = start !== sought || found.busy; // the hits are those of what stood there before
  const shown = open && hits.length > 0 && (!now || now.sought !== "");
  const pick = (label: string): void => {
    setOpen(false);
    setAt(-1);
    onPick(now ? now.put(label) : label);
  };
  const choose = (from: readonly LabelCompletion[]): void => {
    const exact = from.find((hit) => hit.name === sought) ?? from.find((hit) => hit.name.toLowerCase() === sought.toLowerCase());
    const chosen = exact?.name ?? (free ? sought : from[0]?.name);
    if (chosen) pick(chosen);
  };
  const askFor = async (field: HTMLInputElement): Promise<void> => {
    const labels = await api.labels(sought, MOST).then((answer) => answer.labels, () => []);
    if (field.isConnected && field.value === value) choose(labels);
  };
  const heard = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((old) => Math.max(-1, Math.min(hits.length - 1, old + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const marked = shown ? hits[at]?.name : undefined;
      if (part && !marked) {
        setOpen(false);
        onEnter?.(value);
        return;
      }
      if (marked) pick(marked);
      else if (!sought) setOpen(false);
      else if (late && !free) void askFor(event.currentTarget as HTMLInputElement);
      else choose(hits);
    } else if (event.key === "Escape" && (shown || onEscape)) {
      event.preventDefault();
      event.stopPropagation();
      if (shown) setOpen(false);
      else onEscape?.();
    }
  };
  return (
    <div className="combo">
      <input
        type="text"
        role="combobox"
        aria-label={name}
        aria-expanded={shown}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={shown && at >= 0 ? `${id}${at}` : undefined}
        placeholder={placeholder}
        value={value}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        ref={(node) => {
          if (node && focused && !node.dataset["begun"]) {
            node.dataset["begun"] = "1";
            node.focus();
          }
        }}
        onChange={(event) => {
          onChange(event.target.value);
          setOpen(true);
          setAt(-1);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={heard}
      />
      <ul id={`${id}list`} role="listbox" aria-label={`${name}: found`} className="choices" hidden={!shown}>
        {hits.map((hit, i) => (
          <li
            key={hit.id}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === at}
            onPointerDown={(event) => {
              event.preventDefault();
              pick(hit.name);
            }}
          >
            <span>{hit.name}</span>
            {hit.synonym && <small>{hit.synonym}</small>}
            <small className="choice-facts" aria-hidden="true">
              {hit.language} {number(hit.items)}
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}
