import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/parts.css";
import "./ui/pages.css";
import "./ui/safety.css";
import { copyOriginalText } from "./ui/Marked";
import { watchPageErrors } from "./ui/pageErrors";
import { applyTheme } from "./ui/preferences";

applyTheme();
watchPageErrors();
document.addEventListener("copy", copyOriginalText);

const root = document.getElementById("app");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
