/** Asks for a token when the service wants one, or another one. */

import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { hasToken, keepToken, tokenFits, whenTokenNeeded } from "../api/client";
import { count } from "../base/format";
import { store, useStore } from "../base/store";
import { Dialog, Empty } from "../base/ui";
import { queue, useQueue } from "../decisions/desk";
import { refreshJobs } from "../status/jobs";
import { collectionChanged } from "./collection";

/** "later": it is needed, and whoever was asked has closed the question. */
const needed = store<"no" | "now" | "later">("no");
whenTokenNeeded(() => needed.set((old) => (old === "later" || isTyping() ? old : "now")));

/** What is being written would go on in the question: the next answer opens it. */
function isTyping(): boolean {
  const at = document.activeElement;
  return at instanceof HTMLInputElement && at.type !== "password" && at.value !== "";
}

/** Asks again, for those who have closed the question. */
export function TokenButton(): ReactNode {
  if (useStore(needed) !== "later") return null;
  return (
    <button type="button" className="waiting" onClick={() => needed.set("now")}>
      Token needed
    </button>
  );
}

/** In place of a page of which nothing is known without one. */
export function NoToken(): ReactNode {
  return (
    <Empty title="Nothing is shown without a token">
      <p>Whoever runs the service makes one.</p>
      <button type="button" onClick={() => needed.set("now")}>
        Give a token
      </button>
    </Empty>
  );
}

/** Pictures that were refused are asked for again. */
function refreshPictures(): void {
  for (const image of document.images) if (image.complete && !image.naturalWidth) image.src = image.src;
}

export function TokenDialog(): ReactNode {
  return useStore(needed) === "now" ? <Question /> : null;
}

function Question(): ReactNode {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(() => (hasToken() ? "The token that was in use is not known any more, or its last day is over." : ""));
  const { waiting } = useQueue();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []); // a dialog gives it to its first button
  const given = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    keepToken(token);
    try {
      if (await tokenFits()) {
        needed.set("no");
        collectionChanged();
        void refreshJobs();
        refreshPictures();
        queue.retry();
        return;
      }
      keepToken("");
      setTrouble("This token is not known, or its last day is over.");
    } catch (error) {
      setTrouble(`It could not be tried: ${(error as Error).message}.`);
    }
    setBusy(false);
    field.current?.select();
  };
  return (
    <Dialog title="A token is needed" className="small" onClose={() => needed.set("later")}>
      <form onSubmit={(event) => void given(event)}>
        <label className="field">
          <span>
            Token, as <code>wsabie token</code> showed it
          </span>
          <input
            ref={field}
            type="password"
            value={token}
            autoComplete="current-password"
            required
            aria-invalid={trouble !== "" || undefined}
            aria-describedby="token-trouble"
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <p id="token-trouble" className={trouble ? "trouble" : "sr"} role="alert">
          {trouble}
        </p>
        {waiting.length > 0 && (
          <p className="quiet">{count(waiting.length, "decision")} kept in this browser until then.</p>
        )}
        <p className="actions">
          <button type="submit" className="primary" disabled={busy}>
            Go on
          </button>
        </p>
      </form>
    </Dialog>
  );
}
