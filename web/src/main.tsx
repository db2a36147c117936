import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startDecisionHistory } from "./decisions/decision-history";
import { App } from "./shell/app";
import "./style.css";

startDecisionHistory();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
