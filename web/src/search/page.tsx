/** Search by words, by a picture that is dropped, or by a part of one. */

import { type DragEvent, type ReactNode, useEffect, useState } from "react";
import { api } from "../api/client";
import type { LabelScore } from "../api/types";
import { percent } from "../base/format";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/load";
import { useKeys } from "../base/keys";
import { ask, useAsked } from "../base/router";
import { store, useStore } from "../base/store";
import { Empty, Icon, Trouble } from "../base/ui";
import { type Box, regionOf } from "../item/box";
import { listed } from "../item/listed";
import { Picture } from "../item/picture";
import { say } from "../base/saying";
import { Found, Groups } from "./found";
import { lastTerm, written } from "./terms";

interface Dropped {
  file: File;
  src: string;
  key: number;
}

/** Stays while other pages are looked at; it cannot be part of an address. */
const dropped = store<Dropped | null>(null);
let dropCount = 0;

function take(file: File | null | undefined): void {
  if (!file) return;
  if (!file.type.startsWith("image/")) {
    say("Only a picture can be searched with.");
    return;
  }
  const old = dropped.get();
  if (old) URL.revokeObjectURL(old.src);
  dropped.set({ file, src: URL.createObjectURL(file), key: (dropCount += 1) });
  ask({ text: null, by: "picture" });
}

export function SearchPage(): ReactNode {
  const asked = useAsked();
  const text = asked.get("text") ?? "";
  const byPicture = asked.get("by") === "picture";
  const picture = useStore(dropped);
  const [over, setOver] = useState(false);
  const drag = (event: DragEvent, is: boolean): void => {
    event.preventDefault();
    setOver(is);
  };
  useKeys([
    {
      keys: ["/"],
      told: "Type a search",
      run: () => document.querySelector<HTMLInputElement>(".search-bar input")?.focus(),
    },
  ]);
  useEffect(() => {
    const pasted = (event: ClipboardEvent): void => take(event.clipboardData?.files[0]);
    window.addEventListener("paste", pasted);
    return () => window.removeEventListener("paste", pasted);
  }, []);
  return (
    <section
      className={`page search ${over ? "over" : ""}`}
      aria-label="Search"
      onDragOver={(event) => drag(event, true)}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        drag(event, false);
        take(event.dataTransfer.files[0]);
      }}
    >
      <h1 className="sr">Search</h1>
      <SearchBar text={text} />
      {byPicture && picture ? (
        <ByPicture key={picture.key} picture={picture} />
      ) : text ? (
        <ByText text={text} />
      ) : (
        <Start />
      )}
    </section>
  );
}

function SearchBar({ text }: { text: string }): ReactNode {
  const [value, setValue] = useState(text);
  const [asked, setAsked] = useState(text);
  if (asked !== text) {
    setAsked(text);
    setValue(text);
  }
  const run = (next: string): void => ask({ text: next.trim(), by: null });
  return (
    <div className="search-bar" role="search">
      <LabelInput
        name="Search"
        placeholder="harbour boat -person"
        value={value}
        onChange={setValue}
        onPick={setValue}
        part={lastTerm}
        onEnter={run}
        focused={!text && matchMedia("(hover: hover)").matches}
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
            take(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
      </label>
    </div>
  );
}

function Start(): ReactNode {
  const often = useLoad("facets", api.facets).value?.labels.slice(0, 18) ?? [];
  return (
    <Empty title="What are you looking for?">
      <p>
        Words in any language of the labels; <kbd>-word</kbd> leaves something out. Or drop a picture here.
      </p>
      <div className="chips center">
        {often.map((l) => (
          <button key={l.id} type="button" className="chip" onClick={() => ask({ text: written(l.name) })}>
            {l.name}
          </button>
        ))}
      </div>
    </Empty>
  );
}

function ByText({ text }: { text: string }): ReactNode {
  const found = useLoad(`search ${text}`, (signal) => api.search(text, 24, signal));
  const groups = found.value?.groups;
  useEffect(() => listed.set((groups ?? []).flatMap((group) => group.items)), [groups]);
  if (found.error) return <Trouble error={found.error} again={found.again} />;
  if (!found.value || !groups) return <div className="found" aria-busy="true" />;
  const { labels, excluded, notes } = found.value;
  return (
    <div className={`found ${found.busy ? "stale" : ""}`}>
      <p className="understood" aria-live="polite">
        {labels.length + excluded.length > 0 ? (
          <>
            Understood as{" "}
            {labels.map((label) => (
              <span key={label} className="chip still">
                {label}
              </span>
            ))}
            {excluded.map((label) => (
              <span key={label} className="chip still not">
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
        <Groups groups={groups} />
      ) : (
        <Empty title="Nothing found">
          <p>Try another word, or a picture.</p>
        </Empty>
      )}
    </div>
  );
}

function ByPicture({ picture }: { picture: Dropped }): ReactNode {
  const [box, setBox] = useState<Box | null>(null);
  const region = box ? regionOf(box) : null;
  const found = useLoad(`picture ${picture.key} ${region}`, (signal) =>
    api.searchPicture(picture.file, region, 48, signal),
  );
  const items = found.value?.items;
  useEffect(() => listed.set(items ?? []), [items]);
  return (
    <div className="by-picture">
      <aside aria-label="The picture searched with">
        <Picture src={picture.src} name="The picture searched with" ratio={null} drawing box={box} onBox={setBox} />
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
          {surest(found.value?.labels ?? []).map((l) => (
            <button key={l.label} type="button" className="chip" onClick={() => ask({ text: written(l.label), by: null })}>
              {l.label} {l.probability !== null && <small>{percent(l.probability)}</small>}
            </button>
          ))}
        </div>
        <button
          type="button"
          onClick={() => {
            URL.revokeObjectURL(picture.src);
            dropped.set(null);
            ask({ by: null });
          }}
        >
          Close
        </button>
      </aside>
      <div className={`found ${found.busy ? "stale" : ""}`} aria-busy={found.busy}>
        {found.error && <Trouble error={found.error} again={found.again} />}
        {items && <Found items={items} name="Most like it" />}
      </div>
    </div>
  );
}

/** Eight labels of a picture; the model's order is that of scores, which is another one than that of probabilities. */
function surest(labels: LabelScore[]): LabelScore[] {
  return labels.toSorted((a, b) => (b.probability ?? 0) - (a.probability ?? 0)).slice(0, 8);
}
