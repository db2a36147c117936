/** Asks for a token when the service wants one. */

import { type ReactNode, useState } from "react";
import { keepToken, whenTokenNeeded } from "../api/client";
import { store, useStore } from "../base/store";
import { Dialog } from "../base/ui";
import { queue } from "../decisions/desk";
import { refreshJobs } from "../status/jobs";
import { collectionChanged } from "./collection";

const needed = store(false);
whenTokenNeeded(() => needed.set(true));

export function TokenDialog(): ReactNode {
  const asked = useStore(needed);
  const [token, setToken] = useState("");
  if (!asked) return null;
  return (
    <Dialog title="A token is needed" className="small" onClose={() => needed.set(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(token);
          setToken("");
          needed.set(false);
          collectionChanged();
          void refreshJobs();
          queue.retry();
        }}
      >
        <label className="field">
          <span>Token, as <code>wsabie token</code> showed it</span>
          <input
            type="password"
            value={token}
            autoComplete="current-password"
            required
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <p className="actions">
          <button type="submit" className="primary">
            Go on
          </button>
        </p>
      </form>
    </Dialog>
  );
}
