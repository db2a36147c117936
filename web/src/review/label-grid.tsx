/** The pictures for which one label is suggested: accepted and rejected at a glance. */

import { type KeyboardEvent, type ReactNode, useEffect, useState } from "react";
import { heat, thumbnail } from "../api/client";
import type { ItemSummary } from "../api/types";
import type { Verdict } from "../api/client";
import { count, nameOf, number, percent } from "../base/format";
import { useKeys } from "../base/keys";
import { openOver } from "../base/router";
import { useStore } from "../base/store";
import { useSettled } from "../base/load";
import { Empty, Icon, Trouble } from "../base/ui";
import { decide, overlay, undo } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { type CellProps, Grid } from "../gallery/grid";
import { useListing } from "../gallery/listing";
import { keyOf } from "../item/key";
import { listed } from "../item/listed";
import { giveVerdict } from "../item/verdicts";
import { collectionTurn } from "../shell/collection";
import type { Order } from "./page";

const BUTTONS = 46;

export function LabelGrid({ label, order }: { label: string; order: Order }): ReactNode {
  const turn = useStore(collectionTurn);
  const { pages, state, key } = useListing(
    {
      label,
      label_state: "suggested",
      state: "present",
      sort: order === "best_probability" ? "probability" : "uncertainty",
      descending: true,
    },
    turn,
  );
  const [focused, setFocused] = useState({ key, at: 0 });
  const focus = focused.key === key ? focused.at : 0;
  const decided = useStore(overlay);
  useEffect(() => listed.set(pages.items), [pages]);
  const verdictOf = (item: ItemSummary): Verdict | null => decided.get(keyOf(item.id, label)) ?? null;
  const to = (at: number): void => {
    pages.need(at);
    setFocused({ key, at: Math.max(0, Math.min(pages.length - 1, at)) });
  };
  const give = (at: number, verdict: Verdict): void => {
    const item = pages.items[at];
    if (item) giveVerdict(item.id, label, verdictOf(item) === verdict ? null : verdict);
  };
  const before = pages.items.slice(0, focus + 1).filter((item) => verdictOf(item) === null);
  const heard = (event: KeyboardEvent): void => {
    const verdict = ({ a: "accepted", " ": "accepted", r: "rejected", x: "rejected" } as const)[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (verdict) {
      give(focus, verdict);
      to(focus + 1);
    } else if (event.key === "Enter") openOver("item", pages.items[focus]?.id ?? 0);
    else return;
    event.preventDefault();
  };
  useKeys([
    { keys: ["Arrows"], told: "Move", run: () => undefined },
    { keys: ["a"], shown: "a Space", told: "Accept, next", run: () => undefined },
    { keys: ["r"], shown: "r x", told: "Reject, next", run: () => undefined },
    { keys: ["Enter"], told: "Open", run: () => undefined },
    {
      keys: ["A"],
      told: "Accept all open ones up to here",
      run: () =>
        decide(
          before.map((item) => ({ item: item.id, label, state: "accepted" as const })),
          `“${label}” accepted for ${count(before.length, "picture")}`,
        ),
    },
    { keys: ["z"], told: "Undo", run: undo },
  ]);
  if (state.error && !pages.items.length) return <Trouble error={state.error} again={pages.retry} />;
  if (state.ended && !pages.items.length) {
    return (
      <Empty title={`Nothing is open for “${label}”`}>
        <p>Choose another label.</p>
      </Empty>
    );
  }
  return (
    <>
      <p className="hint" aria-live="polite">
        {state.total === null && !state.ended ? `${count(state.known, "picture")} and more` : count(pages.length, "picture")} · accept with <kbd>a</kbd>, reject with <kbd>r</kbd>, open
        with <kbd>Enter</kbd>
      </p>
      <Grid
        key={key}
        name={`Pictures for which ${label} is suggested`}
        place={key}
        length={pages.length}
        focus={focus}
        smallest={150}
        extra={BUTTONS}
        onMove={to}
        onKey={heard}
        onSeen={(last) => pages.need(last)}
        cell={(at, props) => {
          const item = pages.items[at];
          return (
            <Cell
              key={at}
              item={item}
              label={label}
              verdict={item ? verdictOf(item) : null}
              props={props}
              onFocus={() => setFocused({ key, at })}
              onVerdict={(verdict) => give(at, verdict)}
            />
          );
        }}
      />
    </>
  );
}

interface CellOf {
  item: ItemSummary | undefined;
  label: string;
  verdict: Verdict | null;
  props: CellProps;
  onFocus: () => void;
  onVerdict: (verdict: Verdict) => void;
}

function Cell({ item, label, verdict, props, onFocus, onVerdict }: CellOf): ReactNode {
  const [over, setOver] = useState(false);
  const settled = useSettled(over, 200);
  const writes = useMayWrite();
  const name = item ? nameOf(item.path) : `picture ${number(props["data-at"] + 1)}, not loaded yet`;
  return (
    <div
      role="gridcell"
      className={`suggested ${verdict ?? ""}`}
      aria-label={`${name}${item?.probability != null ? ` ${percent(item.probability)}` : ""}${verdict ? `, ${verdict}` : ""}`}
      onFocus={onFocus}
      onPointerEnter={(event) => setOver(event.pointerType === "mouse")}
      onPointerLeave={() => setOver(false)}
      {...props}
    >
      <div className="tile" title={item?.path} onClick={() => item && openOver("item", item.id)}>
        {item && <img src={thumbnail(item, 256)} alt="" loading="lazy" decoding="async" draggable={false} />}
        {item && over && settled && <img className="tile-heat" src={heat(item.id, label)} alt="" />}
        {item?.probability != null && <span className="tile-p">{percent(item.probability)}</span>}
      </div>
      {item && writes && (
        <div className="suggested-buttons">
          <button
            type="button"
            tabIndex={-1}
            className="verdict accept"
            aria-pressed={verdict === "accepted"}
            aria-label={`Accept ${label} for ${name}`}
            onClick={() => onVerdict("accepted")}
          >
            <Icon name="accept" />
          </button>
          <button
            type="button"
            tabIndex={-1}
            className="verdict reject"
            aria-pressed={verdict === "rejected"}
            aria-label={`Reject ${label} for ${name}`}
            onClick={() => onVerdict("rejected")}
          >
            <Icon name="reject" />
          </button>
        </div>
      )}
    </div>
  );
}
