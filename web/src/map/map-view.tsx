/** The stage in React: what is to be shown goes in, what was meant comes out. */

import { type ReactNode, useEffect, useRef } from "react";
import { cameraOf, keepCamera } from "./kept";
import type { Points } from "./points";
import { Stage, type Told } from "./stage";
import type { Word } from "./words";

interface Props {
  stage: Stage | null;
  onStage: (stage: Stage | null) => void;
  version: string;
  points: Points;
  words: readonly Word[];
  codes: Uint8Array<ArrayBuffer> | null;
  chosen: Uint8Array<ArrayBuffer>;
  lassoing: boolean;
  told: Told;
  name: string;
}

export function MapView({ stage, onStage, version, points, words, codes, chosen, lassoing, told, name }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(told);
  useEffect(() => {
    latest.current = told;
  });
  useEffect(() => {
    const made = new Stage(
      box.current!,
      {
        hovered: (...given) => latest.current.hovered(...given),
        opened: (at) => latest.current.opened(at),
        chosen: (...given) => latest.current.chosen(...given),
        label: (label) => latest.current.label(label),
        moved: (camera) => {
          keepCamera(version, camera);
          latest.current.moved(camera);
        },
      },
      cameraOf(version),
    );
    made.show(points);
    onStage(made);
    return () => {
      made.close();
      onStage(null);
    };
  }, [onStage, version, points]);
  useEffect(() => stage?.name(words), [stage, words]);
  useEffect(() => stage?.mark(codes, chosen), [stage, codes, chosen]);
  useEffect(() => stage?.lasso(lassoing), [stage, lassoing]);
  return <div ref={box} className="map-stage" role="application" aria-label={name} aria-roledescription="map" tabIndex={0} />;
}
