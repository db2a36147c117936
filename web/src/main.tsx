import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startDesk } from "./decisions/desk";
import { App } from "./shell/app";
import "./style.css";

startDesk();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
