/** The map that is open: colours, selection, keys. */

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api/client";
import type { MapStatus, LabelPosition } from "../api/types";
import { count } from "../base/format";
import { useKeys } from "../base/keys";
import { useLoad } from "../base/load";
import { ask, openOver } from "../base/router";
import { useStore } from "../base/store";
import { Icon } from "../base/ui";
import { settledCount, undo } from "../decisions/desk";
import { showPicked } from "../gallery/picked";
import { TagBar } from "../gallery/tag-bar";
import { collectionTurn } from "../shell/collection";
import { say } from "../base/saying";
import { isAnother } from "./asking";
import { Card, type Pointed } from "./card";
import { InWords } from "./in-words";
import { selected } from "./kept";
import { MapView } from "./map-view";
import { ColourField, Legend, Tool } from "./parts";
import { marked, type Points, readCodes, SIDE } from "./points";
import { Projections } from "./projections";
import type { Stage } from "./stage";

const LABELS = 500;
const DRAG = 120; // pixels of a press of an arrow

interface Props {
  about: MapStatus;
  points: Points;
  allowed: boolean;
  label: string;
  onAnother: () => void; // the map is another by now
}

export function Chart({ about, points, allowed, label, onAnother }: Props): ReactNode {
  const [stage, setStage] = useState<Stage | null>(null);
  const field = useRef<HTMLDivElement>(null);
  const main = useRef<HTMLDivElement>(null);
  const chosen = useStore(selected);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [lassoing, setLassoing] = useState(false);
  const [listing, setListing] = useState(false);
  const [sight, setSight] = useState<{ points: number; labels: readonly LabelPosition[] }>({ points: 0, labels: [] });
  const named = useLoad(`labels ${about.version}`, (signal) => api.mapLabels(about.method, about.version, LABELS, signal));
  const labels = named.value?.labels;
  const another = isAnother(named.error);
  useEffect(() => {
    if (another) onAnother();
  }, [another]); // eslint-disable-line react-hooks/exhaustive-deps -- asked for once, whoever answers
  const codes = useColours(label, points);
  const chosenMarks = useMemo(() => marked(points, chosen), [points, chosen]);
  const words = useMemo(() => (labels ?? []).map((l) => ({ label: l.name, weight: l.accepted, ...within(about, l) })), [labels, about]);
  const total = points.ids.length;

  const choose = (at: readonly number[], more: boolean): void => {
    const ids = at.map((i) => points.ids[i]!);
    selected.set((old) => new Set(more ? [...old, ...ids] : ids));
    setLassoing(false);
  };
  const open = (id: number): void => openOver("item", id);
  const look = (): void => {
    if (!stage) return;
    const there = (labels ?? []).filter((l) => {
      const { x, y } = within(about, l);
      return stage.sees(x, y);
    });
    setSight({ points: stage.inSight().length, labels: there });
  };
  const list = (): void => {
    if (!listing) look();
    setListing(!listing);
  };
  const byKeys = (move: (now: Stage) => void) => () => {
    if (!stage) return;
    move(stage);
    stage.aim();
  };
  const arrow = (dx: number, dy: number) => byKeys((now) => now.move(dx, dy));
  useKeys([
    { keys: ["+", "="], shown: "+ −", told: "Nearer, farther", run: byKeys((now) => now.zoom(1.5)) },
    { keys: ["-", "_"], told: "Farther", shown: "−", run: byKeys((now) => now.zoom(1 / 1.5)) },
    { keys: ["ArrowLeft"], shown: "← → ↑ ↓", told: "Move; the picture in the middle is shown", run: arrow(DRAG, 0) },
    { keys: ["ArrowRight"], shown: "→", told: "To the right", run: arrow(-DRAG, 0) },
    { keys: ["ArrowUp"], shown: "↑", told: "Up", run: arrow(0, DRAG) },
    { keys: ["ArrowDown"], shown: "↓", told: "Down", run: arrow(0, -DRAG) },
    { keys: ["0"], told: "The whole map", run: byKeys((now) => now.all()) },
    { keys: ["Enter"], told: "Open the picture that is shown", run: () => pointed && open(pointed.id) },
    {
      keys: ["x"],
      told: "Select it or not",
      run: () =>
        pointed &&
        selected.set((old) => {
          const next = new Set(old);
          if (!next.delete(pointed.id)) next.add(pointed.id);
          return next;
        }),
    },
    { keys: ["a"], told: "Select all in sight", run: () => choose(stage?.inSight() ?? [], false) },
    { keys: ["l"], told: "Outline what to select; or drag with Shift", run: () => setLassoing((old) => !old) },
    { keys: ["c"], told: "Colour by a label", run: () => field.current?.querySelector("input")?.focus() },
    { keys: ["t"], told: "Tag what is selected", run: () => document.querySelector<HTMLInputElement>(".tag-bar input")?.focus() },
    { keys: ["w"], told: "The map in words", run: list },
    { keys: ["Escape"], told: "Select nothing", run: () => (lassoing ? setLassoing(false) : selected.set(new Set())) },
    { keys: ["z"], told: "Undo", run: undo },
  ]);
  const pick = (name: string): void => {
    ask({ label: name });
    const there = labels?.find((l) => l.name === name);
    const place = there && within(about, there);
    if (place && !stage?.sees(place.x, place.y)) stage?.goTo(place.x, place.y);
  };

  return (
    <>
      <div className="toolbar">
        <strong className="count" role="heading" aria-level={2}>
          {count(total, "picture")}
        </strong>
        <Projections about={about} allowed={allowed} />
        <div ref={field} className="map-field">
          <ColourField key={label} label={label} onPick={pick} />
        </div>
        {label && codes && <Legend codes={codes} />}
      </div>
      <div className="map-main">
        <div ref={main} className="map-frame">
          <MapView
            stage={stage}
            onStage={setStage}
            version={about.version}
            points={points}
            words={words}
            codes={codes}
            chosen={chosenMarks}
            lassoing={lassoing}
            name={`Map of ${count(total, "picture")}: plus and minus zoom, arrows move, Enter opens, x selects`}
            told={{
              hovered: (at, x, y) => {
                const { clientWidth: width = 0, clientHeight: height = 0 } = main.current ?? {};
                setPointed(at < 0 ? null : { id: points.ids[at]!, x, y, width, height });
              },
              opened: (at) => open(points.ids[at]!),
              chosen: choose,
              label: pick,
              moved: () => {
                if (listing) look();
              },
            }}
          />
          <div aria-live="polite">{pointed && <Card at={pointed} onOpen={() => open(pointed.id)} />}</div>
          <div className="map-tools" role="toolbar" aria-label="Map" aria-orientation="vertical">
            <Tool icon="plus" told="Nearer" run={() => stage?.zoom(1.5)} />
            <Tool icon="minus" told="Farther" run={() => stage?.zoom(1 / 1.5)} />
            <Tool icon="whole" told="The whole map" run={() => stage?.all()} />
            <Tool icon="lasso" told="Outline what to select" pressed={lassoing} run={() => setLassoing(!lassoing)} />
            <Tool icon="list" told="The map in words" pressed={listing} run={list} />
          </div>
          {lassoing && <p className="map-note">Draw around the pictures to select</p>}
        </div>
        {listing && (
          <InWords
            inSight={sight.labels}
            points={sight.points}
            chosen={chosen}
            onLabel={(l) => pick(l.name)}
            onClose={() => setListing(false)}
          />
        )}
      </div>
      <p className="sr" role="status">
        {chosen.size > 0 && `${count(chosen.size, "picture")} selected`}
      </p>
      {chosen.size > 0 && (
        <TagBar chosen={chosen} onClear={() => selected.set(new Set())}>
          <button type="button" onClick={() => showPicked([...chosen])}>
            <Icon name="gallery" /> Gallery
          </button>
        </TagBar>
      )}
    </>
  );
}

/** What is known of a label, for each point; asked again when something was decided. */
function useColours(label: string, points: Points): Uint8Array<ArrayBuffer> | null {
  const settled = useStore(settledCount);
  const turn = useStore(collectionTurn);
  const found = useLoad(label ? `colour ${label} ${settled} ${turn}` : null, async (signal) => ({
    label,
    content: await api.mapLabel(label, signal),
  }));
  const error = found.error;
  useEffect(() => {
    if (error) say(error.message);
  }, [error]);
  const content = found.value?.label === label ? found.value.content : null; // not those of the label before
  return useMemo(() => (content ? readCodes(content, points) : null), [content, points]);
}

/** Where a place of the plane is in the units of points. */
function within(about: MapStatus, at: { x: number; y: number }): { x: number; y: number } {
  const { x, y, side } = about.box;
  return { x: ((at.x - x) / side) * SIDE, y: SIDE - ((at.y - y) / side) * SIDE };
}
