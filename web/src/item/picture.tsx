/** A picture that fills its space, with an optional heat map and a box. */

import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react";
import { useDebounced } from "../base/loading";
import { type Box, buildBox, moveBox } from "./region-box";

interface Props {
  src: string;
  name: string;
  ratio: number | null;
  heatMap?: string | null; // address of the picture with the heat map over it
  isDrawing?: boolean;
  box?: Box | null;
  onBox?: (box: Box | null) => void;
}

export function Picture({ src, name, ratio, heatMap = null, isDrawing = false, box = null, onBox }: Props): ReactNode {
  const [natural, setNatural] = useState<{ src: string; ratio: number } | null>(null);
  const [brokenSrc, setBrokenSrc] = useState<string | null>(null);
  const displayRatio = ratio ?? (natural?.src === src ? natural.ratio : 4 / 3);
  return (
    <div className="picture">
      <div className="frame" style={{ "--ratio": displayRatio } as React.CSSProperties}>
        {brokenSrc === src ? (
          <p className="picture-note">This picture cannot be shown: its file is gone, or damaged.</p>
        ) : (
          <img
            src={src}
            alt={name}
            draggable={false}
            onLoad={(event) => {
              const { naturalWidth, naturalHeight } = event.currentTarget;
              if (!ratio && naturalHeight) setNatural({ src, ratio: naturalWidth / naturalHeight });
            }}
            onError={() => setBrokenSrc(src)}
          />
        )}
        <HeatMap src={heatMap} />
        {(isDrawing || box) && onBox && <BoxEditor isDrawing={isDrawing} box={box} onBox={onBox} />}
      </div>
    </div>
  );
}

/** Heat map that appears after a short delay and fades in once loaded. */
function HeatMap({ src }: { src: string | null }): ReactNode {
  const debouncedSrc = useDebounced(src, 120);
  const [loadedSrc, setLoadedSrc] = useState<string | null>(null);
  const [failedSrc, setFailedSrc] = useState<string | null>(null);
  if (!src || src !== debouncedSrc) return null;
  if (failedSrc === src)
    return <p className="heat-note">No heat map: the model in use does not know this label, or sees no pictures.</p>;
  const visibility = loadedSrc === src ? "loaded" : "";
  return <img className={`heat ${visibility}`} src={src} alt="" onLoad={() => setLoadedSrc(src)} onError={() => setFailedSrc(src)} />;
}

interface BoxEditorProps {
  isDrawing: boolean;
  box: Box | null;
  onBox: (box: Box | null) => void;
}

function BoxEditor({ isDrawing, box, onBox }: BoxEditorProps): ReactNode {
  const startRef = useRef<{ x: number; y: number } | null>(null);
  const [draft, setDraft] = useState<Box | null>(null);
  const locate = (event: PointerEvent<HTMLElement>): { x: number; y: number } => {
    const edges = event.currentTarget.getBoundingClientRect();
    return {
      x: (100 * (event.clientX - edges.left)) / edges.width,
      y: (100 * (event.clientY - edges.top)) / edges.height,
    };
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    onBox(moveBox(box ?? { x: 25, y: 25, w: 50, h: 50 }, event.key, event.shiftKey));
  };
  const visibleBox = draft ?? box;
  return (
    <div
      className={`drawing ${isDrawing ? "on" : ""}`}
      role="group"
      tabIndex={isDrawing ? 0 : -1}
      aria-label="Draw a box; arrow keys move it, with Shift they resize it"
      onKeyDown={handleKey}
      onPointerDown={(event) => {
        if (!isDrawing || event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        startRef.current = locate(event);
      }}
      onPointerMove={(event) => {
        if (startRef.current) setDraft(buildBox(startRef.current, locate(event)));
      }}
      onPointerUp={(event) => {
        if (!startRef.current) return;
        onBox(buildBox(startRef.current, locate(event)));
        startRef.current = null;
        setDraft(null);
      }}
      onPointerCancel={() => {
        startRef.current = null;
        setDraft(null);
      }}
    >
      {visibleBox && (
        <span
          className="box"
          style={{ left: `${visibleBox.x}%`, top: `${visibleBox.y}%`, width: `${visibleBox.w}%`, height: `${visibleBox.h}%` }}
        />
      )}
    </div>
  );
}
