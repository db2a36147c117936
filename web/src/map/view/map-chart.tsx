/** The loaded map: colours, selection, shortcuts. */

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api/client";
import type { MapStatus, LabelPosition } from "../../api/types";
import { formatCount } from "../../base/format";
import { useShortcuts } from "../../base/shortcuts";
import { useLoad } from "../../base/loading";
import { updateSearchParams, openDialog } from "../../base/router";
import { useStore } from "../../base/store";
import { Icon } from "../../base/components";
import { answerCount, undo } from "../../decisions/decision-history";
import { showInGallery } from "../../gallery/external-selection";
import { TagBar } from "../../gallery/tag-bar";
import { collectionVersion } from "../../shell/collection";
import { notify } from "../../base/notifications";
import { isOutdated } from "../data/map-loader";
import { ItemCard, type CardPosition } from "./item-card";
import { TextView } from "./text-view";
import { selectedItems } from "./view-state";
import { MapView } from "./map-view";
import { ColourField, Legend, Tool } from "./controls";
import { markPoints, type Points, readCodes, SIDE } from "../data/points";
import { ProjectionChoice } from "./projection-choice";
import type { Stage } from "../stage/stage";

const MAX_LABELS = 500;
const PAN_STEP = 120; // pixels for each press of an arrow key

interface Props {
  mapStatus: MapStatus;
  points: Points;
  canWrite: boolean;
  label: string;
  onOutdated: () => void; // the map has changed
}

export function MapChart({ mapStatus, points, canWrite, label, onOutdated }: Props): ReactNode {
  const [stage, setStage] = useState<Stage | null>(null);
  const colourField = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const selectedIds = useStore(selectedItems);
  const [hovered, setHovered] = useState<CardPosition | null>(null);
  const [isLasso, setIsLasso] = useState(false);
  const [showsText, setShowsText] = useState(false);
  const [visible, setVisible] = useState<{ points: number; labels: readonly LabelPosition[] }>({ points: 0, labels: [] });
  const labelPositions = useLoad(`labels ${mapStatus.version}`, (signal) => api.listMapLabels(mapStatus.method, mapStatus.version, MAX_LABELS, signal));
  const labels = labelPositions.value?.labels;
  const outdated = isOutdated(labelPositions.error);
  useEffect(() => {
    if (outdated) onOutdated();
  }, [outdated]); // eslint-disable-line react-hooks/exhaustive-deps -- called once for each change
  const codes = useLabelCodes(label, points);
  const selectionMarks = useMemo(() => markPoints(points, selectedIds), [points, selectedIds]);
  const mapLabels = useMemo(() => (labels ?? []).map((l) => ({ label: l.name, weight: l.accepted, ...convertPosition(mapStatus, l) })), [labels, mapStatus]);
  const total = points.ids.length;

  const select = (indices: readonly number[], isAdditive: boolean): void => {
    const ids = indices.map((i) => points.ids[i]!);
    selectedItems.set((current) => new Set(isAdditive ? [...current, ...ids] : ids));
    setIsLasso(false);
  };
  const open = (id: number): void => openDialog("item", id);
  const updateVisible = (): void => {
    if (!stage) return;
    const labelsInSight = (labels ?? []).filter((l) => {
      const { x, y } = convertPosition(mapStatus, l);
      return stage.isVisible(x, y);
    });
    setVisible({ points: stage.listVisible().length, labels: labelsInSight });
  };
  const toggleText = (): void => {
    if (!showsText) updateVisible();
    setShowsText(!showsText);
  };
  const bindMove = (move: (current: Stage) => void) => () => {
    if (!stage) return;
    move(stage);
    stage.selectCentre();
  };
  const bindPan = (dx: number, dy: number) => bindMove((current) => current.pan(dx, dy));
  useShortcuts([
    { keys: ["+", "="], display: "+ −", description: "Nearer, farther", run: bindMove((current) => current.zoom(1.5)) },
    { keys: ["-", "_"], description: "Farther", display: "−", run: bindMove((current) => current.zoom(1 / 1.5)) },
    { keys: ["ArrowLeft"], display: "← → ↑ ↓", description: "Move; the picture in the middle is shown", run: bindPan(PAN_STEP, 0) },
    { keys: ["ArrowRight"], display: "→", description: "To the right", run: bindPan(-PAN_STEP, 0) },
    { keys: ["ArrowUp"], display: "↑", description: "Up", run: bindPan(0, PAN_STEP) },
    { keys: ["ArrowDown"], display: "↓", description: "Down", run: bindPan(0, -PAN_STEP) },
    { keys: ["0"], description: "The whole map", run: bindMove((current) => current.showAll()) },
    { keys: ["Enter"], description: "Open the picture that is shown", run: () => hovered && open(hovered.id) },
    {
      keys: ["x"],
      description: "Select it or not",
      run: () =>
        hovered &&
        selectedItems.set((current) => {
          const next = new Set(current);
          if (!next.delete(hovered.id)) next.add(hovered.id);
          return next;
        }),
    },
    { keys: ["a"], description: "Select all in sight", run: () => select(stage?.listVisible() ?? [], false) },
    { keys: ["l"], description: "Outline what to select; or drag with Shift", run: () => setIsLasso((current) => !current) },
    { keys: ["c"], description: "Colour by a label", run: () => colourField.current?.querySelector("input")?.focus() },
    { keys: ["t"], description: "Tag what is selected", run: () => document.querySelector<HTMLInputElement>(".tag-bar input")?.focus() },
    { keys: ["w"], description: "The map in words", run: toggleText },
    { keys: ["Escape"], description: "Select nothing", run: () => (isLasso ? setIsLasso(false) : selectedItems.set(new Set())) },
    { keys: ["z"], description: "Undo", run: undo },
  ]);
  const showLabel = (name: string): void => {
    updateSearchParams({ label: name });
    const position = labels?.find((l) => l.name === name);
    const target = position && convertPosition(mapStatus, position);
    if (target && !stage?.isVisible(target.x, target.y)) stage?.goTo(target.x, target.y);
  };

  return (
    <>
      <div className="toolbar">
        <strong className="count" role="heading" aria-level={2}>
          {formatCount(total, "picture")}
        </strong>
        <ProjectionChoice mapStatus={mapStatus} canWrite={canWrite} />
        <div ref={colourField} className="map-field">
          <ColourField key={label} label={label} onPick={showLabel} />
        </div>
        {label && codes && <Legend codes={codes} />}
      </div>
      <div className="map-main">
        <div ref={frame} className="map-frame">
          <MapView
            stage={stage}
            onStage={setStage}
            version={mapStatus.version}
            points={points}
            labels={mapLabels}
            codes={codes}
            selection={selectionMarks}
            isLasso={isLasso}
            name={`Map of ${formatCount(total, "picture")}: plus and minus zoom, arrows move, Enter opens, x selects`}
            handlers={{
              onHover: (index, x, y) => {
                const { clientWidth: width = 0, clientHeight: height = 0 } = frame.current ?? {};
                setHovered(index < 0 ? null : { id: points.ids[index]!, x, y, width, height });
              },
              onOpen: (index) => open(points.ids[index]!),
              onSelect: select,
              onLabel: showLabel,
              onMove: () => {
                if (showsText) updateVisible();
              },
            }}
          />
          <div aria-live="polite">{hovered && <ItemCard position={hovered} onOpen={() => open(hovered.id)} />}</div>
          <div className="map-tools" role="toolbar" aria-label="Map" aria-orientation="vertical">
            <Tool icon="plus" title="Nearer" run={() => stage?.zoom(1.5)} />
            <Tool icon="minus" title="Farther" run={() => stage?.zoom(1 / 1.5)} />
            <Tool icon="expand" title="The whole map" run={() => stage?.showAll()} />
            <Tool icon="lasso" title="Outline what to select" isPressed={isLasso} run={() => setIsLasso(!isLasso)} />
            <Tool icon="list" title="The map in words" isPressed={showsText} run={toggleText} />
          </div>
          {isLasso && <p className="map-note">Draw around the pictures to select</p>}
        </div>
        {showsText && (
          <TextView
            labels={visible.labels}
            pointCount={visible.points}
            selectedIds={selectedIds}
            onLabel={(l) => showLabel(l.name)}
            onClose={() => setShowsText(false)}
          />
        )}
      </div>
      <p className="sr" role="status">
        {selectedIds.size > 0 && `${formatCount(selectedIds.size, "picture")} selected`}
      </p>
      {selectedIds.size > 0 && (
        <TagBar itemIds={selectedIds} onClear={() => selectedItems.set(new Set())}>
          <button type="button" onClick={() => showInGallery([...selectedIds])}>
            <Icon name="gallery" /> Gallery
          </button>
        </TagBar>
      )}
    </>
  );
}

/** Return the code of each point for a label; reloaded after decisions. */
function useLabelCodes(label: string, points: Points): Uint8Array<ArrayBuffer> | null {
  const answers = useStore(answerCount);
  const version = useStore(collectionVersion);
  const codeContent = useLoad(label ? `colour ${label} ${answers} ${version}` : null, async (signal) => ({
    label,
    content: await api.getMapCodes(label, signal),
  }));
  const error = codeContent.error;
  useEffect(() => {
    if (error) notify(error.message);
  }, [error]);
  const content = codeContent.value?.label === label ? codeContent.value.content : null; // not the codes of the previous label
  return useMemo(() => (content ? readCodes(content, points) : null), [content, points]);
}

/** Convert a position of the projection to map units. */
function convertPosition(mapStatus: MapStatus, position: { x: number; y: number }): { x: number; y: number } {
  const { x, y, side } = mapStatus.box;
  return { x: ((position.x - x) / side) * SIDE, y: SIDE - ((position.y - y) / side) * SIDE };
}
