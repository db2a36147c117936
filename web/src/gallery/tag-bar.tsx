/** What can be done with the selection. */

import { type ReactNode, useState } from "react";
import type { Verdict } from "../api/client";
import { count } from "../base/format";
import { LabelInput } from "../base/label-input";
import { Icon } from "../base/ui";
import { decide } from "../decisions/desk";
import { say } from "../base/saying";

const TOLD = { accepted: "tagged", rejected: "rejected for" } as const;

const MOST = 10_000; // decisions that the service takes at once

interface Props {
  chosen: ReadonlySet<number>;
  onClear: () => void;
  children?: ReactNode; // what else the page can do with them
}

export function TagBar({ chosen, onClear, children }: Props): ReactNode {
  const [label, setLabel] = useState("");
  const apply = (name: string, state: Verdict | null): void => {
    const text = name.trim();
    if (!text) {
      document.querySelector<HTMLInputElement>(".tag-bar input")?.focus();
      return;
    }
    if (chosen.size > MOST) {
      say(`At most ${count(MOST, "picture")} are tagged at once; select fewer.`);
      return;
    }
    const told = state ? `${count(chosen.size, "picture")} ${TOLD[state]} ${text}` : `${text} taken off ${count(chosen.size, "picture")}`;
    decide(
      [...chosen].map((item) => ({ item, label: text, state })),
      told,
    );
    say(`${told}. Press z to undo.`);
    setLabel("");
  };
  return (
    <div className="tag-bar" role="region" aria-label="Selection">
      <strong>{count(chosen.size, "picture")}</strong>
      <LabelInput
        name="Tag"
        placeholder="Tag for all of them"
        value={label}
        onChange={setLabel}
        onPick={(picked) => apply(picked, "accepted")}
        free
      />
      <button type="button" className="accept" onClick={() => apply(label, "accepted")}>
        <Icon name="tag" /> Tag
      </button>
      <button type="button" title="It does not fit them: the model learns from that" onClick={() => apply(label, "rejected")}>
        Not this
      </button>
      <button type="button" onClick={() => apply(label, null)}>
        Untag
      </button>
      {children}
      <button type="button" className="plain" aria-label="Select nothing" onClick={onClear}>
        <Icon name="close" />
      </button>
    </div>
  );
}
