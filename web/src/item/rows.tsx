/** Labels of an item as rows that are accepted or rejected. */

import type { ReactNode } from "react";
import type { Verdict } from "../api/client";
import { ago, percent } from "../base/format";
import { Bar, Icon } from "../base/ui";
import { useMayWrite } from "../decisions/may";
import { provenance, type TagRow } from "./tags";

interface Props {
  row: TagRow;
  at: number;
  current: boolean;
  numbered: boolean;
  onLook: (label: string | null) => void; // its heat is wanted, or no longer
  onVerdict: (row: TagRow, verdict: Verdict | null) => void;
}

export function Row({ row, at, current, numbered, onLook, onVerdict }: Props): ReactNode {
  const writes = useMayWrite();
  const p = row.suggestion?.probability ?? row.annotation?.probability ?? null;
  const when = row.annotation?.at ?? (row.verdict ? null : row.suggestion?.at);
  const give = (verdict: Verdict): void => onVerdict(row, row.verdict === verdict ? null : verdict);
  return (
    <li
      className={`row ${row.verdict ?? ""} ${current ? "current" : ""}`}
      aria-current={current || undefined}
      onPointerEnter={(event) => {
        if (event.pointerType === "mouse") onLook(row.label);
      }}
      onPointerLeave={() => onLook(null)}
      onFocus={() => onLook(row.label)}
      onBlur={() => onLook(null)}
    >
      {numbered && <kbd className="row-key">{at < 9 ? at + 1 : ""}</kbd>}
      <button
        type="button"
        className="row-what"
        title="Where it is seen"
        onClick={() => onLook(row.label)}
      >
        <span className="row-name">{row.label}</span>
        <small title={when ?? undefined}>
          {row.verdict === "rejected" ? "rejected " : ""}
          {provenance(row)}
          {when ? `, ${ago(when)}` : ""}
        </small>
      </button>
      <span className="row-p">
        {p !== null && (
          <>
            <Bar value={p} />
            <span>{percent(p)}</span>
          </>
        )}
      </span>
      {writes && (
        <>
          <button
            type="button"
            className="verdict accept"
            aria-pressed={row.verdict === "accepted"}
            aria-label={`Accept ${row.label}`}
            onClick={() => give("accepted")}
          >
            <Icon name="accept" />
          </button>
          <button
            type="button"
            className="verdict reject"
            aria-pressed={row.verdict === "rejected"}
            aria-label={`Reject ${row.label}`}
            onClick={() => give("rejected")}
          >
            <Icon name="reject" />
          </button>
        </>
      )}
    </li>
  );
}
