/** Small parts of the map's page. */

import { type ReactNode, useMemo, useState } from "react";
import { count } from "../base/format";
import { LabelInput } from "../base/label-input";
import { ask } from "../base/router";
import { Icon, type IconName } from "../base/ui";
import { ACCEPTED, REJECTED } from "./points";

export function ColourField({ label, onPick }: { label: string; onPick: (label: string) => void }): ReactNode {
  const [text, setText] = useState(label);
  return (
    <>
      <LabelInput
        name="Colour by a label"
        placeholder="Colour by a label"
        value={text}
        onChange={setText}
        onPick={onPick}
      />
      {label && (
        <button type="button" className="plain" aria-label="No colours" onClick={() => ask({ label: null })}>
          <Icon name="close" />
        </button>
      )}
    </>
  );
}

export function Legend({ codes }: { codes: Uint8Array }): ReactNode {
  const [accepted, rejected, suggested] = useMemo(() => {
    const counts: [number, number, number] = [0, 0, 0];
    for (const code of codes) if (code) counts[code === ACCEPTED ? 0 : code === REJECTED ? 1 : 2] += 1;
    return counts;
  }, [codes]);
  return (
    <ul className="map-legend" aria-label="Colours">
      <li className="accepted">{count(accepted, "accepted", "accepted")}</li>
      <li className="suggested">{count(suggested, "suggested", "suggested")}</li>
      <li className="rejected">{count(rejected, "rejected", "rejected")}</li>
    </ul>
  );
}

interface ToolProps {
  icon: IconName;
  told: string;
  pressed?: boolean;
  run: () => void;
}

export function Tool({ icon, told, pressed, run }: ToolProps): ReactNode {
  return (
    <button type="button" aria-label={told} title={told} aria-pressed={pressed} onClick={run}>
      <Icon name={icon} />
    </button>
  );
}
