/** A picture as large as there is room for; the heat of a label over it, and a box that is drawn on it. */

import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react";
import { useSettled } from "../base/load";
import { type Box, between, nudged } from "./box";

interface Props {
  src: string;
  name: string;
  ratio: number | null;
  heat?: string | null; // address of the same picture with the heat over it
  drawing?: boolean;
  box?: Box | null;
  onBox?: (box: Box | null) => void;
}

export function Picture({ src, name, ratio, heat = null, drawing = false, box = null, onBox }: Props): ReactNode {
  const [natural, setNatural] = useState<{ src: string; ratio: number } | null>(null);
  const [broken, setBroken] = useState<string | null>(null);
  const shape = ratio ?? (natural?.src === src ? natural.ratio : 4 / 3);
  return (
    <div className="picture">
      <div className="frame" style={{ "--ratio": shape } as React.CSSProperties}>
        {broken === src ? (
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
            onError={() => setBroken(src)}
          />
        )}
        <Heat src={heat} />
        {(drawing || box) && onBox && <Drawing drawing={drawing} box={box} onBox={onBox} />}
      </div>
    </div>
  );
}

/** Comes when a label has been looked at for a moment, and fades in once it is there. */
function Heat({ src }: { src: string | null }): ReactNode {
  const wanted = useSettled(src, 120);
  const [there, setThere] = useState<string | null>(null);
  const [none, setNone] = useState<string | null>(null);
  if (!src || src !== wanted) return null;
  if (none === src)
    return <p className="heat-note">No heat map: the model in use does not know this label, or sees no pictures.</p>;
  const shown = there === src ? "there" : "";
  return <img className={`heat ${shown}`} src={src} alt="" onLoad={() => setThere(src)} onError={() => setNone(src)} />;
}

interface DrawingProps {
  drawing: boolean;
  box: Box | null;
  onBox: (box: Box | null) => void;
}

function Drawing({ drawing, box, onBox }: DrawingProps): ReactNode {
  const from = useRef<{ x: number; y: number } | null>(null);
  const [live, setLive] = useState<Box | null>(null);
  const at = (event: PointerEvent<HTMLElement>): { x: number; y: number } => {
    const edges = event.currentTarget.getBoundingClientRect();
    return {
      x: (100 * (event.clientX - edges.left)) / edges.width,
      y: (100 * (event.clientY - edges.top)) / edges.height,
    };
  };
  const heard = (event: KeyboardEvent): void => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    onBox(nudged(box ?? { x: 25, y: 25, w: 50, h: 50 }, event.key, event.shiftKey));
  };
  const shown = live ?? box;
  return (
    <div
      className={`drawing ${drawing ? "on" : ""}`}
      role="group"
      tabIndex={drawing ? 0 : -1}
      aria-label="Draw a box; arrow keys move it, with Shift they resize it"
      onKeyDown={heard}
      onPointerDown={(event) => {
        if (!drawing || event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = at(event);
      }}
      onPointerMove={(event) => {
        if (from.current) setLive(between(from.current, at(event)));
      }}
      onPointerUp={(event) => {
        if (!from.current) return;
        onBox(between(from.current, at(event)));
        from.current = null;
        setLive(null);
      }}
      onPointerCancel={() => {
        from.current = null;
        setLive(null);
      }}
    >
      {shown && (
        <span
          className="box"
          style={{ left: `${shown.x}%`, top: `${shown.y}%`, width: `${shown.w}%`, height: `${shown.h}%` }}
        />
      )}
    </div>
  );
}
