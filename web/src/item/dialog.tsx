/** One item over the page: the picture, its labels and where they came from, a box to ask about, similar pictures. */

import { type ReactNode, useState } from "react";
import { api, heat, original, thumbnail } from "../api/client";
import type { ItemDetails } from "../api/types";
import { bytes, nameOf } from "../base/format";
import { useKeys } from "../base/keys";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/load";
import { closeOver, go, openOver } from "../base/router";
import { useStore } from "../base/store";
import { Dialog, Icon, Trouble } from "../base/ui";
import { overlay, undo } from "../decisions/desk";
import { useMayWrite } from "../decisions/may";
import { type Box, regionOf } from "./box";
import { fetchDetail, prefetch, useDetail } from "./details";
import { listed } from "./listed";
import { Picture } from "./picture";
import { RegionPanel } from "./region-panel";
import { Row } from "./rows";
import { tagRows } from "./tags";
import { giveVerdict } from "./verdicts";

export function ItemDialog({ id }: { id: number }): ReactNode {
  const { item, error } = useDetail(id, true);
  const list = useStore(listed);
  const at = list.findIndex((other) => other.id === id);
  const step = (by: number): void => {
    const next = list[at + by];
    if (at < 0 || !next) return;
    const beyond = list[at + 2 * by];
    if (beyond) prefetch(beyond);
    openOver("item", next.id);
  };
  return (
    <Dialog
      title={item ? nameOf(item.path) : "Picture"}
      className="item-dialog"
      onClose={() => closeOver("item")}
    >
      {!item && error && <Trouble error={error} again={() => void fetchDetail(id)} />}
      {item ? (
        <Open key={id} item={item} onStep={step} first={at <= 0} last={at < 0 || at === list.length - 1} />
      ) : (
        !error && <div className="item-open" aria-busy="true" />
      )}
    </Dialog>
  );
}

interface OpenProps {
  item: ItemDetails;
  onStep: (by: number) => void;
  first: boolean;
  last: boolean;
}

function Open({ item, onStep, first, last }: OpenProps): ReactNode {
  const rows = tagRows(item, useStore(overlay));
  const [looked, setLooked] = useState<string | null>(null);
  const [drawing, setDrawing] = useState(false);
  const [box, setBox] = useState<Box | null>(null);
  const [adding, setAdding] = useState("");
  const writes = useMayWrite();
  useKeys(
    [
      { keys: ["ArrowRight", "n"], told: "Next", run: () => onStep(1) },
      { keys: ["ArrowLeft", "p"], told: "Previous", run: () => onStep(-1) },
      { keys: ["z"], told: "Undo", run: undo },
      { keys: ["b"], told: "Draw a box", run: () => setDrawing((old) => !old) },
    ],
    "dialog",
  );
  return (
    <div className="item-open">
      <div className="item-picture">
        <Picture
          src={thumbnail(item, 1024)}
          name={nameOf(item.path)}
          ratio={item.width && item.height ? item.width / item.height : null}
          heat={looked ? heat(item.id, looked) : null}
          drawing={drawing}
          box={box}
          onBox={setBox}
        />
        <div className="item-tools">
          <button type="button" aria-label="Previous picture" disabled={first} onClick={() => onStep(-1)}>
            <Icon name="back" />
          </button>
          <button
            type="button"
            aria-pressed={drawing}
            onClick={() => {
              setDrawing(!drawing);
              setBox(null);
            }}
          >
            <Icon name="box" /> Box
          </button>
          <button type="button" aria-label="Next picture" disabled={last} onClick={() => onStep(1)}>
            <Icon name="next" />
          </button>
        </div>
      </div>
      <div className="item-side">
        {drawing && (
          <RegionPanel item={item.id} region={box ? regionOf(box) : null} />
        )}
        <section aria-label="Labels">
          <h3>Labels</h3>
          {writes && (
            <LabelInput
              name="Add a label"
              placeholder="Add a label"
              value={adding}
              onChange={setAdding}
              onPick={(label) => {
                giveVerdict(item.id, label, "accepted");
                setAdding("");
              }}
              free
            />
          )}
          <ul className="rows">
            {rows.map((row, i) => (
              <Row
                key={row.label}
                row={row}
                at={i}
                current={false}
                numbered={false}
                onLook={setLooked}
                onVerdict={(of, verdict) => giveVerdict(item.id, of.label, verdict)}
              />
            ))}
          </ul>
          {rows.length === 0 && <p className="quiet">No label, and none is suggested.</p>}
          <Regions item={item} />
        </section>
        <Similar id={item.id} />
        <Facts item={item} />
      </div>
    </div>
  );
}

function Regions({ item }: { item: ItemDetails }): ReactNode {
  const found = item.annotations.filter((a) => a.region);
  if (!found.length) return null;
  return (
    <>
      <h3>In parts of it</h3>
      <ul className="plain-list">
        {found.map((a) => (
          <li key={`${a.label} ${a.region}`}>
            {a.label} <small>{a.region.length < 60 ? a.region : "an outline"}</small>
          </li>
        ))}
      </ul>
    </>
  );
}

function Similar({ id }: { id: number }): ReactNode {
  const found = useLoad(`similar ${id}`, (signal) => api.similar(id, 12, signal));
  if (found.error) return null; // there is no model yet
  return (
    <section aria-label="Similar">
      <h3>Similar</h3>
      <div className="strip">
        {(found.value?.items ?? []).map((other) => (
          <button
            key={other.id}
            type="button"
            className="strip-item"
            aria-label={`Open ${nameOf(other.path)}`}
            onClick={() => openOver("item", other.id)}
          >
            <img src={thumbnail(other, 256)} alt="" loading="lazy" />
          </button>
        ))}
      </div>
    </section>
  );
}

function Facts({ item }: { item: ItemDetails }): ReactNode {
  const facts: [string, string | null][] = [
    ["File", item.path],
    ["Size", item.width && item.height ? `${item.width} × ${item.height}` : null],
    ["Bytes", item.size === null ? null : bytes(item.size)],
    ["Taken", item.taken_at?.replace("T", " ") ?? null],
    ["State", item.state === "present" ? null : item.state],
  ];
  return (
    <section aria-label="File">
      <h3>File</h3>
      <dl className="facts">
        {facts.map(
          ([name, value]) =>
            value && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
      <p className="links">
        <a href={original(item.id)} target="_blank" rel="noreferrer">
          Open the original
        </a>
        <button type="button" className="link" onClick={() => go(`/?folder=${encodeURIComponent(item.folder)}`)}>
          More of its folder
        </button>
      </p>
    </section>
  );
}
