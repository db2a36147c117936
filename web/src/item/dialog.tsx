/** Dialog of one item: the picture, its labels and their provenance, a region, similar pictures. */

import { type ReactNode, useState } from "react";
import { api, getHeatMapUrl, getOriginalUrl, getThumbnailUrl } from "../api/client";
import type { ItemDetails } from "../api/types";
import { formatBytes, getFileName } from "../base/format";
import { useShortcuts } from "../base/shortcuts";
import { LabelInput } from "../base/label-input";
import { useLoad } from "../base/loading";
import { closeDialog, navigate, openDialog } from "../base/router";
import { useStore } from "../base/store";
import { Dialog, Icon, ErrorMessage } from "../base/components";
import { overlay, undo } from "../decisions/decision-history";
import { useWritePermission } from "../decisions/write-permission";
import { type Box, formatRegion } from "./region-box";
import { fetchDetail, prefetch, useDetail } from "./detail-cache";
import { siblingItems } from "./sibling-items";
import { Picture } from "./picture";
import { RegionPanel } from "./region-panel";
import { TagRowView } from "./tag-row-view";
import { buildTagRows } from "./tag-rows";
import { recordDecision } from "./decision";

export function ItemDialog({ id }: { id: number }): ReactNode {
  const { item, error } = useDetail(id, true);
  const siblings = useStore(siblingItems);
  const position = siblings.findIndex((sibling) => sibling.id === id);
  const showSibling = (offset: number): void => {
    const next = siblings[position + offset];
    if (position < 0 || !next) return;
    const following = siblings[position + 2 * offset];
    if (following) prefetch(following);
    openDialog("item", next.id);
  };
  return (
    <Dialog
      title={item ? getFileName(item.path) : "Picture"}
      className="item-dialog"
      onClose={() => closeDialog("item")}
    >
      {!item && error && <ErrorMessage error={error} onRetry={() => void fetchDetail(id)} />}
      {item ? (
        <ItemView key={id} item={item} onStep={showSibling} isFirst={position <= 0} isLast={position < 0 || position === siblings.length - 1} />
      ) : (
        !error && <div className="item-open" aria-busy="true" />
      )}
    </Dialog>
  );
}

interface ItemViewProps {
  item: ItemDetails;
  onStep: (offset: number) => void;
  isFirst: boolean;
  isLast: boolean;
}

function ItemView({ item, onStep, isFirst, isLast }: ItemViewProps): ReactNode {
  const rows = buildTagRows(item, useStore(overlay));
  const [highlightedLabel, setHighlightedLabel] = useState<string | null>(null);
  const [isDrawing, setIsDrawing] = useState(false);
  const [box, setBox] = useState<Box | null>(null);
  const [newLabel, setNewLabel] = useState("");
  const canWrite = useWritePermission();
  useShortcuts(
    [
      { keys: ["ArrowRight", "n"], description: "Next", run: () => onStep(1) },
      { keys: ["ArrowLeft", "p"], description: "Previous", run: () => onStep(-1) },
      { keys: ["z"], description: "Undo", run: undo },
      { keys: ["b"], description: "Draw a box", run: () => setIsDrawing((isActive) => !isActive) },
    ],
    "dialog",
  );
  return (
    <div className="item-open">
      <div className="item-picture">
        <Picture
          src={getThumbnailUrl(item, 1024)}
          name={getFileName(item.path)}
          ratio={item.width && item.height ? item.width / item.height : null}
          heatMap={highlightedLabel ? getHeatMapUrl(item.id, highlightedLabel) : null}
          isDrawing={isDrawing}
          box={box}
          onBox={setBox}
        />
        <div className="item-tools">
          <button type="button" aria-label="Previous picture" disabled={isFirst} onClick={() => onStep(-1)}>
            <Icon name="back" />
          </button>
          <button
            type="button"
            aria-pressed={isDrawing}
            onClick={() => {
              setIsDrawing(!isDrawing);
              setBox(null);
            }}
          >
            <Icon name="box" /> Box
          </button>
          <button type="button" aria-label="Next picture" disabled={isLast} onClick={() => onStep(1)}>
            <Icon name="next" />
          </button>
        </div>
      </div>
      <div className="item-side">
        {isDrawing && (
          <RegionPanel item={item.id} region={box ? formatRegion(box) : null} />
        )}
        <section aria-label="Labels">
          <h3>Labels</h3>
          {canWrite && (
            <LabelInput
              name="Add a label"
              placeholder="Add a label"
              value={newLabel}
              onChange={setNewLabel}
              onPick={(label) => {
                recordDecision([item.id], label, "accepted");
                setNewLabel("");
              }}
              allowsNew
            />
          )}
          <ul className="rows">
            {rows.map((row, i) => (
              <TagRowView
                key={row.label}
                row={row}
                position={i}
                isCurrent={false}
                isNumbered={false}
                onHighlight={setHighlightedLabel}
                onDecide={(tagRow, state) => recordDecision([item.id], tagRow.label, state)}
              />
            ))}
          </ul>
          {rows.length === 0 && <p className="quiet">No labels and no suggestions.</p>}
          <RegionList item={item} />
        </section>
        <PictureStrip title="Burst" items={item.burst.map((id) => ({ id, hash: null, path: `picture ${id}` }))} current={item.id} />
        <SimilarItems id={item.id} />
        <FileFacts item={item} />
      </div>
    </div>
  );
}

function RegionList({ item }: { item: ItemDetails }): ReactNode {
  const regionAnnotations = item.annotations.filter((a) => a.region);
  if (!regionAnnotations.length) return null;
  return (
    <>
      <h3>In regions</h3>
      <ul className="plain-list">
        {regionAnnotations.map((a) => (
          <li key={`${a.label} ${a.region}`}>
            {a.label} <small>{a.region.length < 60 ? a.region : "an outline"}</small>
          </li>
        ))}
      </ul>
    </>
  );
}

function SimilarItems({ id }: { id: number }): ReactNode {
  const similarItems = useLoad(`similar ${id}`, (signal) => api.listSimilar(id, 12, signal));
  if (similarItems.error) return null; // no model yet
  return <PictureStrip title="Similar" items={similarItems.value?.items ?? null} />;
}

interface PictureStripProps {
  title: string;
  items: readonly { id: number; hash: string | null; path: string }[] | null; // null while they load
  current?: number;
}

function PictureStrip({ title, items, current }: PictureStripProps): ReactNode {
  if (items?.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <div className="strip">
        {(items ?? []).map((item) => (
          <button
            key={item.id}
            type="button"
            className="strip-item"
            aria-label={`Open ${getFileName(item.path)}`}
            aria-current={item.id === current || undefined}
            onClick={() => openDialog("item", item.id)}
          >
            <img src={getThumbnailUrl(item, 256)} alt="" loading="lazy" />
          </button>
        ))}
      </div>
    </section>
  );
}

function FileFacts({ item }: { item: ItemDetails }): ReactNode {
  const facts: [string, string | null][] = [
    ["File", item.path],
    ["Size", item.width && item.height ? `${item.width} × ${item.height}` : null],
    ["Bytes", item.size === null ? null : formatBytes(item.size)],
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
        <a href={getOriginalUrl(item.id)} target="_blank" rel="noreferrer">
          Open the original
        </a>
        <button type="button" className="link" onClick={() => navigate(`/?folder=${encodeURIComponent(item.folder)}`)}>
          More of its folder
        </button>
      </p>
    </section>
  );
}
