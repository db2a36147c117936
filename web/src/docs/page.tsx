/** The service's own description of its API, with a way to try it. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { AWAY } from "../api/client";
import { isDark, onTheme } from "../base/theme";
import { Trouble } from "../base/ui";

export function DocsPage(): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let left = false;
    Promise.all([import("swagger-ui-dist/swagger-ui-es-bundle.js"), import("swagger-ui-dist/swagger-ui.css")])
      .then(([swagger]) => {
        if (left || !box.current) return;
        swagger.default({ url: "/openapi.json", domNode: box.current, validatorUrl: null, deepLinking: false });
      })
      .catch(() => setError(new Error(`${AWAY}; load this page again when it can`)));
    return () => {
      left = true;
    };
  }, []);
  useEffect(() => {
    const root = document.documentElement; // where swagger-ui looks for its dark colours
    const follow = () => root.classList.toggle("dark-mode", isDark());
    follow();
    const leave = onTheme(follow);
    return () => {
      leave();
      root.classList.remove("dark-mode");
    };
  }, []);
  return (
    <section className="page docs" aria-label="API">
      <h1 className="sr">API</h1>
      {error && <Trouble error={error} />}
      <div ref={box} />
    </section>
  );
}
