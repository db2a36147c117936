/** Decisions that are not saved yet, or were refused. */

import { type ReactNode, useEffect, useState } from "react";
import { UNREACHABLE } from "../api/client";
import { formatCount } from "../base/format";
import { Dialog } from "../base/components";
import { queue, useQueue } from "../decisions/decision-history";
import { describeChange } from "../decisions/messages";

export function PendingDecisions(): ReactNode {
  const { pending, failed, delayReason } = useQueue();
  const [isOpen, setIsOpen] = useState(false);
  const isOnline = useOnline();
  const offline = !isOnline || delayReason === UNREACHABLE ? "Offline" : "";
  const pendingText = pending.length ? `${formatCount(pending.length, "decision")} kept` : "";
  const hasProblem = failed.length > 0 || delayReason !== null || !isOnline;
  const text = failed.length ? `${failed.length} not saved` : [offline, pendingText].filter(Boolean).join(": ");
  if (isOpen && !hasProblem) setIsOpen(false);
  return (
    <>
      <span role="status">
        {hasProblem && (
          <button type="button" className="pending-button" onClick={() => setIsOpen(true)}>
            {text}
          </button>
        )}
      </span>
      {isOpen && (
        <Dialog title="Decisions on their way" className="small" onClose={() => setIsOpen(false)}>
          {delayReason && (
            <p>
              They are kept in this browser and sent when the service takes them ({delayReason}).{" "}
              <button type="button" onClick={queue.retry}>
                Try now
              </button>
            </p>
          )}
          <ul className="plain-list">
            {failed.map(({ change, reason }) => (
              <li key={change.id}>
                {describeChange(change)}: {reason}{" "}
                <button type="button" onClick={() => queue.retryChange(change.id)}>
                  Try again
                </button>{" "}
                <button type="button" onClick={() => queue.discard(change.id)}>
                  Drop it
                </button>
              </li>
            ))}
            {pending.slice(0, 20).map((change) => (
              <li key={change.id}>{describeChange(change)}</li>
            ))}
          </ul>
        </Dialog>
      )}
    </>
  );
}

function useOnline(): boolean {
  const [isOnline, setIsOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = (): void => setIsOnline(navigator.onLine);
    window.addEventListener("online", update);
    window.addEventListener("offline", update);
    return () => {
      window.removeEventListener("online", update);
      window.removeEventListener("offline", update);
    };
  }, []);
  return isOnline;
}
