/** Actions on the selection. */

import { type ReactNode, useState } from "react";
import type { DecisionState } from "../api/client";
import { formatCount } from "../base/format";
import { LabelInput } from "../base/label-input";
import { Icon } from "../base/components";
import { decide } from "../decisions/decision-history";
import { notify } from "../base/notifications";

const STATE_WORDS = { accepted: "tagged", rejected: "rejected for" } as const;

const MAX_DECISIONS = 10_000; // most decisions of a request

interface Props {
  itemIds: ReadonlySet<number>;
  onClear: () => void;
  children?: ReactNode; // further actions of the page
}

export function TagBar({ itemIds, onClear, children }: Props): ReactNode {
  const [label, setLabel] = useState("");
  const apply = (name: string, state: DecisionState | null): void => {
    const text = name.trim();
    if (!text) {
      document.querySelector<HTMLInputElement>(".tag-bar input")?.focus();
      return;
    }
    if (itemIds.size > MAX_DECISIONS) {
      notify(`At most ${formatCount(MAX_DECISIONS, "picture")} are tagged at once; select fewer.`);
      return;
    }
    const description = state ? `${formatCount(itemIds.size, "picture")} ${STATE_WORDS[state]} ${text}` : `${text} taken off ${formatCount(itemIds.size, "picture")}`;
    decide(
      [...itemIds].map((item) => ({ item, label: text, state })),
      description,
    );
    notify(`${description}. Press z to undo.`);
    setLabel("");
  };
  return (
    <div className="tag-bar" role="region" aria-label="Selection">
      <strong>{formatCount(itemIds.size, "picture")}</strong>
      <LabelInput
        name="Tag"
        placeholder="Tag for all of them"
        value={label}
        onChange={setLabel}
        onPick={(name) => apply(name, "accepted")}
        allowsNew
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
