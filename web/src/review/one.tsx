/** One picture, and what the model suggests for it. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { heat, thumbnail } from "../api/client";
import type { ItemSummary, ItemDetails } from "../api/types";
import type { Verdict } from "../api/client";
import { count, nameOf, number } from "../base/format";
import { useKeys } from "../base/keys";
import { LabelInput } from "../base/label-input";
import { ask, openOver, useAsked } from "../base/router";
import { useStore } from "../base/store";
import { Empty, Icon, Link, Trouble } from "../base/ui";
import { decide, overlay, undo } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { useListing } from "../gallery/listing";
import { listed } from "../item/listed";
import { fetchDetail, prefetch, useDetail, useDetails } from "../item/details";
import { Picture } from "../item/picture";
import { Row } from "../item/rows";
import { type TagRow, tagRows } from "../item/tags";
import { giveVerdict } from "../item/verdicts";
import { collectionTurn } from "../shell/collection";
import { say } from "../base/saying";
import type { Order } from "./page";

const AHEAD = 4;

export function OneByOne({ label, order }: { label: string; order: Order }): ReactNode {
  const asked = useAsked();
  const turn = useStore(collectionTurn);
  const { pages, state } = useListing(
    {
      ...(label ? { label } : {}),
      label_state: "suggested",
      state: "present",
      sort: order === "best_probability" && label ? "probability" : order,
      descending: true,
    },
    turn,
  );
  const id = Number(asked.get("at")) || null;
  const found = id === null ? 0 : pages.items.findIndex((item) => item.id === id);
  const details = useDetails();
  const at = openFrom(pages.items, Math.max(0, found), 1, details) ?? Math.max(0, found);
  const move = (to: number): void => {
    const item = pages.items[to];
    if (item) ask({ at: item.id }, { replace: true });
  };
  useEffect(() => {
    pages.need(at + 2 * AHEAD);
    for (let i = at; i <= at + AHEAD; i += 1) if (pages.items[i]) prefetch(pages.items[i]!);
  }, [pages, at, state.known]);
  useEffect(() => listed.set(pages.items), [pages]);

  const item = pages.items[at];
  if (state.error && !item) return <Trouble error={state.error} again={pages.retry} />;
  if (state.ended && openFrom(pages.items, 0, 1, details) === null) return <AllDone label={label} />;
  if (!item) return <div className="one" aria-busy="true" />;
  return (
    <One
      item={item}
      at={at}
      total={state.ended ? pages.items.length : state.total}
      onNext={() => {
        const next = openFrom(pages.items, at + 1, 1, details);
        if (next === null) say("That was the last one.");
        else move(next);
      }}
      onBack={() => move(openFrom(pages.items, at - 1, -1, details) ?? at)}
      onUndo={() => {
        const was = undo();
        const place = was === null ? -1 : pages.items.findIndex((other) => other.id === was);
        if (place >= 0 && place !== at) move(place);
      }}
    />
  );
}

/** The place of the next item for which something is suggested, or of which that is not known yet. */
function openFrom(list: readonly ItemSummary[], from: number, by: 1 | -1, details: ReadonlyMap<number, ItemDetails>): number | null {
  for (let at = from; at >= 0 && at < list.length; at += by) {
    if (details.get(list[at]!.id)?.suggestions.length !== 0) return at;
  }
  return null;
}

function AllDone({ label }: { label: string }): ReactNode {
  return (
    <Empty title={label ? `Nothing is open for “${label}”` : "Nothing is open"}>
      <p>
        Everything that was suggested is decided. Have the model <Link to="/training">learn</Link> from it: new suggestions
        come here.
      </p>
    </Empty>
  );
}

interface OneProps {
  item: ItemSummary;
  at: number;
  total: number | null;
  onNext: () => void;
  onBack: () => void;
  onUndo: () => void;
}

function One({ item, at, total, onNext, onBack, onUndo }: OneProps): ReactNode {
  const { item: detail, error } = useDetail(item.id);
  const [looked, setLooked] = useState<{ id: number; label: string } | null>(null);
  const shown = looked?.id === item.id ? looked.label : null;
  return (
    <div className="one">
      <div className="one-picture">
        <Picture
          src={thumbnail(item, 1024)}
          name={nameOf(item.path)}
          ratio={item.width && item.height ? item.width / item.height : null}
          heat={shown ? heat(item.id, shown) : null}
        />
        <p className="one-name">
          <span>
            {number(at + 1)}
            {total !== null && ` of ${count(total, "picture")}`}
          </span>
          <button type="button" className="link" onClick={() => openOver("item", item.id)}>
            {nameOf(item.path)}
          </button>
        </p>
      </div>
      {detail ? (
        <Decide
          key={item.id}
          detail={detail}
          onLook={(label) => setLooked(label ? { id: item.id, label } : null)}
          {...{ onNext, onBack, onUndo }}
        />
      ) : (
        <div className="one-side" aria-busy={!error}>
          {error && <Trouble error={error} again={() => void fetchDetail(item.id)} />}
        </div>
      )}
    </div>
  );
}

interface DecideProps {
  detail: ItemDetails;
  onLook: (label: string | null) => void;
  onNext: () => void;
  onBack: () => void;
  onUndo: () => void;
}

function Decide({ detail, onLook, onNext, onBack, onUndo }: DecideProps): ReactNode {
  const rows = suggestedFirst(tagRows(detail, useStore(overlay)));
  const [at, setAt] = useState(0);
  const [pinned, setPinned] = useState(false);
  const [adding, setAdding] = useState("");
  const writes = useMayWrite();
  const field = useRef<HTMLDivElement>(null);
  const verdict = (row: TagRow, state: Verdict | null): void => giveVerdict(detail.id, row.label, state);
  const to = (next: number): void => {
    const place = Math.max(0, Math.min(rows.length - 1, next));
    setAt(place);
    if (pinned) onLook(rows[place]?.label ?? null);
  };
  const give = (place: number, state: Verdict): void => {
    const row = rows[place];
    if (!row) return;
    verdict(row, row.verdict === state ? null : state);
    to(place + 1);
  };
  const open = rows.filter((row) => row.verdict === null);
  const rejectRest = (): void => {
    decide(
      open.map((row) => ({ item: detail.id, label: row.label, state: "rejected" as const })),
      `${count(open.length, "label")} rejected`,
    );
    onNext();
  };
  const digits = Array.from({ length: 9 }, (_, i) => String(i + 1));
  useKeys([
    { keys: digits, shown: "1 … 9", told: "Accept that label", run: (e) => give(digitOf(e) - 1, "accepted") },
    {
      keys: digits.map((d) => `Shift+${d}`),
      shown: "Shift 1 … 9",
      told: "Reject that label",
      run: (e) => give(digitOf(e) - 1, "rejected"),
    },
    { keys: ["ArrowDown", "j"], shown: "↓ j", told: "Next label", run: () => to(at + 1) },
    { keys: ["ArrowUp", "k"], shown: "↑ k", told: "Label before", run: () => to(at - 1) },
    { keys: ["a", "Enter"], told: "Accept the marked label", run: () => give(at, "accepted") },
    { keys: ["r", "x"], told: "Reject the marked label", run: () => give(at, "rejected") },
    { keys: ["e"], told: "Reject what is open, next picture", run: rejectRest },
    { keys: ["ArrowRight", "n", " "], shown: "→ n Space", told: "Next picture; what is open stays open", run: onNext },
    { keys: ["ArrowLeft", "p"], shown: "← p", told: "Picture before", run: onBack },
    { keys: ["t", "+"], told: "Add a label", run: () => field.current?.querySelector("input")?.focus() },
    {
      keys: ["h"],
      told: "Show where the marked label is seen",
      run: () => {
        setPinned(!pinned);
        onLook(pinned ? null : (rows[at]?.label ?? null));
      },
    },
    { keys: ["z"], told: "Undo", run: onUndo },
  ]);
  return (
    <div className="one-side">
      <ul className="rows" aria-label="Labels">
        {rows.map((row, i) => (
          <Row key={row.label} row={row} at={i} current={i === at} numbered onLook={onLook} onVerdict={verdict} />
        ))}
      </ul>
      {rows.length === 0 && <p className="quiet">Nothing is suggested for this picture.</p>}
      <div ref={field} hidden={!writes}>
        <LabelInput
          name="Add a label"
          placeholder="Add a label (t)"
          value={adding}
          onChange={setAdding}
          onPick={(label) => {
            giveVerdict(detail.id, label, "accepted");
            setAdding("");
          }}
          onEscape={() => (document.activeElement as HTMLElement | null)?.blur()}
          free
        />
      </div>
      <div className="one-actions">
        <button type="button" onClick={onBack} aria-label="Picture before">
          <Icon name="back" />
        </button>
        <button type="button" onClick={onUndo} disabled={!writes}>
          <Icon name="undo" /> Undo
        </button>
        <button type="button" onClick={rejectRest} disabled={!open.length || !writes}>
          Reject rest
        </button>
        <button type="button" className="primary" onClick={onNext}>
          Next <Icon name="next" />
        </button>
      </div>
    </div>
  );
}

function digitOf(event: KeyboardEvent): number {
  return Number(event.code.slice(-1));
}

/** What there is to decide on stands first, and stays where it is once decided. */
function suggestedFirst(rows: TagRow[]): TagRow[] {
  return [...rows.filter((row) => row.suggestion), ...rows.filter((row) => !row.suggestion)];
}
