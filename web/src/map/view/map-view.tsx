/** The stage as a React component. */

import { type ReactNode, useEffect, useRef } from "react";
import { readCamera, storeCamera } from "./view-state";
import type { Points } from "../data/points";
import { Stage, type StageHandlers } from "../stage/stage";
import type { MapLabel } from "../stage/label-layout";

interface Props {
  stage: Stage | null;
  onStage: (stage: Stage | null) => void;
  version: string;
  points: Points;
  labels: readonly MapLabel[];
  codes: Uint8Array<ArrayBuffer> | null;
  selection: Uint8Array<ArrayBuffer>;
  isLasso: boolean;
  handlers: StageHandlers;
  name: string;
}

export function MapView({ stage, onStage, version, points, labels, codes, selection, isLasso, handlers, name }: Props): ReactNode {
  const container = useRef<HTMLDivElement>(null);
  const latestHandlers = useRef(handlers);
  useEffect(() => {
    latestHandlers.current = handlers;
  });
  useEffect(() => {
    const newStage = new Stage(
      container.current!,
      {
        onHover: (...values) => latestHandlers.current.onHover(...values),
        onOpen: (index) => latestHandlers.current.onOpen(index),
        onSelect: (...values) => latestHandlers.current.onSelect(...values),
        onLabel: (label) => latestHandlers.current.onLabel(label),
        onMove: (camera) => {
          storeCamera(version, camera);
          latestHandlers.current.onMove(camera);
        },
      },
      readCamera(version),
    );
    newStage.setPoints(points);
    onStage(newStage);
    return () => {
      newStage.close();
      onStage(null);
    };
  }, [onStage, version, points]);
  useEffect(() => stage?.setLabels(labels), [stage, labels]);
  useEffect(() => stage?.setMarks(codes, selection), [stage, codes, selection]);
  useEffect(() => stage?.setLasso(isLasso), [stage, isLasso]);
  return <div ref={container} className="map-stage" role="application" aria-label={name} aria-roledescription="map" tabIndex={0} />;
}
