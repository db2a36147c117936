/** Dialog that asks for a token when the service requires one. */

import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { hasToken, storeToken, isTokenValid, onTokenRequired } from "../api/client";
import { formatCount } from "../base/format";
import { createStore, useStore } from "../base/store";
import { Dialog, EmptyState } from "../base/components";
import { queue, useQueue } from "../decisions/decision-history";
import { refreshJobs } from "../status/jobs";
import { refreshCollection } from "./collection";

/** "later": a token is required, and the dialog was closed. */
const tokenPrompt = createStore<"no" | "now" | "later">("no");
onTokenRequired(() => tokenPrompt.set((prompt) => (prompt === "later" || isTyping() ? prompt : "now")));

/** True while the user types; the dialog would take the keys, so the next response opens it. */
function isTyping(): boolean {
  const input = document.activeElement;
  return input instanceof HTMLInputElement && input.type !== "password" && input.value !== "";
}

/** Button that opens the dialog again. */
export function TokenButton(): ReactNode {
  if (useStore(tokenPrompt) !== "later") return null;
  return (
    <button type="button" className="pending-button" onClick={() => tokenPrompt.set("now")}>
      Token needed
    </button>
  );
}

/** Replaces a page that needs a token. */
export function NoToken(): ReactNode {
  return (
    <EmptyState title="Nothing is shown without a token">
      <p>Whoever runs the service makes one.</p>
      <button type="button" onClick={() => tokenPrompt.set("now")}>
        Give a token
      </button>
    </EmptyState>
  );
}

/** Load refused pictures again. */
function reloadPictures(): void {
  for (const image of document.images) if (image.complete && !image.naturalWidth) image.src = image.src;
}

export function TokenDialog(): ReactNode {
  return useStore(tokenPrompt) === "now" ? <TokenForm /> : null;
}

function TokenForm(): ReactNode {
  const [token, setToken] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState(() => (hasToken() ? "Your token is no longer valid." : ""));
  const { pending } = useQueue();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []); // a dialog focuses its first button
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setIsBusy(true);
    storeToken(token);
    try {
      if (await isTokenValid()) {
        tokenPrompt.set("no");
        refreshCollection();
        void refreshJobs();
        reloadPictures();
        queue.retry();
        return;
      }
      storeToken("");
      setProblem("This token is unknown or has expired.");
    } catch (error) {
      setProblem(`It could not be tried: ${(error as Error).message}.`);
    }
    setIsBusy(false);
    input.current?.select();
  };
  return (
    <Dialog title="A token is needed" className="small" onClose={() => tokenPrompt.set("later")}>
      <form onSubmit={(event) => void submit(event)}>
        <label className="field">
          <span>
            Token, as <code>wsabie token</code> showed it
          </span>
          <input
            ref={input}
            type="password"
            value={token}
            autoComplete="current-password"
            required
            aria-invalid={problem !== "" || undefined}
            aria-describedby="token-trouble"
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <p id="token-trouble" className={problem ? "error-message" : "sr"} role="alert">
          {problem}
        </p>
        {pending.length > 0 && (
          <p className="quiet">{formatCount(pending.length, "decision")} kept in this browser until then.</p>
        )}
        <p className="actions">
          <button type="submit" className="primary" disabled={isBusy}>
            Go on
          </button>
        </p>
      </form>
    </Dialog>
  );
}
