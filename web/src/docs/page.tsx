/** Interactive API documentation. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { UNREACHABLE } from "../api/client";
import { isDark, watchTheme } from "../base/theme";
import { ErrorMessage } from "../base/components";

export function DocsPage(): ReactNode {
  const container = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let isClosed = false;
    Promise.all([import("swagger-ui-dist/swagger-ui-es-bundle.js"), import("swagger-ui-dist/swagger-ui.css")])
      .then(([swagger]) => {
        if (isClosed || !container.current) return;
        swagger.default({ url: "/openapi.json", domNode: container.current, validatorUrl: null, deepLinking: false });
      })
      .catch(() => setError(new Error(`${UNREACHABLE}; load this page again when it can`)));
    return () => {
      isClosed = true;
    };
  }, []);
  useEffect(() => {
    const root = document.documentElement; // swagger-ui reads its dark theme here
    const applyTheme = () => root.classList.toggle("dark-mode", isDark());
    applyTheme();
    const stopWatching = watchTheme(applyTheme);
    return () => {
      stopWatching();
      root.classList.remove("dark-mode");
    };
  }, []);
  return (
    <section className="page docs" aria-label="API">
      <h1 className="sr">API</h1>
      {error && <ErrorMessage error={error} />}
      <div ref={container} />
    </section>
  );
}
