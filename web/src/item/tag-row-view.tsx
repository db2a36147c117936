/** Row of a label, with buttons to accept and reject it. */

import type { ReactNode } from "react";
import type { DecisionState } from "../api/client";
import { formatAge, formatPercent } from "../base/format";
import { Bar, Icon } from "../base/components";
import { useStore } from "../base/store";
import { useWritePermission } from "../decisions/write-permission";
import { areGuesses, GUESS_EXPLANATION } from "./guesses";
import { describeProvenance, isOpen, type TagRow } from "./tag-rows";

interface Props {
  row: TagRow;
  position: number;
  isCurrent: boolean;
  isNumbered: boolean;
  onHighlight: (label: string | null) => void; // show or hide its heat map
  onDecide: (row: TagRow, state: DecisionState | null) => void;
}

export function TagRowView({ row, position, isCurrent, isNumbered, onHighlight, onDecide }: Props): ReactNode {
  const canWrite = useWritePermission();
  const isGuess = useStore(areGuesses) && isOpen(row);
  const probability = row.suggestion?.probability ?? row.annotation?.probability ?? null;
  const time = row.annotation?.at ?? (row.state ? null : row.suggestion?.at);
  const toggleDecision = (state: DecisionState): void => onDecide(row, row.state === state ? null : state);
  return (
    <li
      className={`row ${row.state ?? ""} ${isCurrent ? "current" : ""}`}
      aria-current={isCurrent || undefined}
      onPointerEnter={(event) => {
        if (event.pointerType === "mouse") onHighlight(row.label);
      }}
      onPointerLeave={() => onHighlight(null)}
      onFocus={() => onHighlight(row.label)}
      onBlur={() => onHighlight(null)}
    >
      {isNumbered && <kbd className="row-key">{position < 9 ? position + 1 : ""}</kbd>}
      <button
        type="button"
        className="row-label"
        title="Where it is seen"
        onClick={() => onHighlight(row.label)}
      >
        <span className="row-name">{row.label}</span>
        <small className={isGuess ? "guess" : undefined} title={isGuess ? GUESS_EXPLANATION : (time ?? undefined)}>
          {row.state === "rejected" ? "rejected " : ""}
          {describeProvenance(row, isGuess)}
          {time ? `, ${formatAge(time)}` : ""}
        </small>
      </button>
      <span className="row-p">
        {probability !== null && (
          <>
            <Bar value={probability} />
            <span>{formatPercent(probability)}</span>
          </>
        )}
      </span>
      {canWrite && (
        <>
          <button
            type="button"
            className="decision accept"
            aria-pressed={row.state === "accepted"}
            aria-label={`Accept ${row.label}`}
            onClick={() => toggleDecision("accepted")}
          >
            <Icon name="accept" />
          </button>
          <button
            type="button"
            className="decision reject"
            aria-pressed={row.state === "rejected"}
            aria-label={`Reject ${row.label}`}
            onClick={() => toggleDecision("rejected")}
          >
            <Icon name="reject" />
          </button>
        </>
      )}
    </li>
  );
}
