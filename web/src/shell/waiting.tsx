/** Decisions that are not with the service yet, or that it refused. */

import { type ReactNode, useEffect, useState } from "react";
import { AWAY } from "../api/client";
import { count } from "../base/format";
import { Dialog } from "../base/ui";
import { queue, useQueue } from "../decisions/desk";
import { toldOf } from "../decisions/words";

export function Waiting(): ReactNode {
  const { waiting, refused, trouble } = useQueue();
  const [open, setOpen] = useState(false);
  const online = useOnline();
  const offline = !online || trouble === AWAY ? "Offline" : "";
  const kept = waiting.length ? `${count(waiting.length, "decision")} kept` : "";
  const held = refused.length > 0 || trouble !== null || !online;
  const text = refused.length ? `${refused.length} not saved` : [offline, kept].filter(Boolean).join(": ");
  if (open && !held) setOpen(false);
  return (
    <>
      <span role="status">
        {held && (
          <button type="button" className="waiting" onClick={() => setOpen(true)}>
            {text}
          </button>
        )}
      </span>
      {open && (
        <Dialog title="Decisions on their way" className="small" onClose={() => setOpen(false)}>
          {trouble && (
            <p>
              They are kept in this browser and sent when the service takes them ({trouble}).{" "}
              <button type="button" onClick={queue.retry}>
                Try now
              </button>
            </p>
          )}
          <ul className="plain-list">
            {refused.map(({ step, reason }) => (
              <li key={step.id}>
                {toldOf(step)}: {reason}{" "}
                <button type="button" onClick={() => queue.tryAgain(step.id)}>
                  Try again
                </button>{" "}
                <button type="button" onClick={() => queue.forget(step.id)}>
                  Drop it
                </button>
              </li>
            ))}
            {waiting.slice(0, 20).map((step) => (
              <li key={step.id}>{toldOf(step)}</li>
            ))}
          </ul>
        </Dialog>
      )}
    </>
  );
}

function useOnline(): boolean {
  const [online, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const look = (): void => setOnline(navigator.onLine);
    window.addEventListener("online", look);
    window.addEventListener("offline", look);
    return () => {
      window.removeEventListener("online", look);
      window.removeEventListener("offline", look);
    };
  }, []);
  return online;
}
