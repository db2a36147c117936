/** Controls of the map. */

import { type ReactNode, useMemo, useState } from "react";
import { formatCount } from "../../base/format";
import { LabelInput } from "../../base/label-input";
import { updateSearchParams } from "../../base/router";
import { Icon, type IconName } from "../../base/components";
import { ACCEPTED, REJECTED } from "../data/points";

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
        <button type="button" className="plain" aria-label="No colours" onClick={() => updateSearchParams({ label: null })}>
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
      <li className="accepted">{formatCount(accepted, "accepted", "accepted")}</li>
      <li className="suggested">{formatCount(suggested, "suggested", "suggested")}</li>
      <li className="rejected">{formatCount(rejected, "rejected", "rejected")}</li>
    </ul>
  );
}

interface ToolProps {
  icon: IconName;
  title: string;
  isPressed?: boolean;
  run: () => void;
}

export function Tool({ icon, title, isPressed, run }: ToolProps): ReactNode {
  return (
    <button type="button" aria-label={title} title={title} aria-pressed={isPressed} onClick={run}>
      <Icon name={icon} />
    </button>
  );
}
