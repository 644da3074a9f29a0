// The shared styles come first: those of a feature are more particular, and win.
import "./ui/fonts.css";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/touch.css";
import "./ui/css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { copyOriginalText } from "./ui/Marked";
import { watchPageErrors } from "./ui/pageErrors";
import { applyTheme } from "./ui/preferences";

applyTheme();
watchPageErrors();
document.addEventListener("copy", copyOriginalText);

// Over plain http a browser has no service workers; then the app needs the hub to open.
if ("serviceWorker" in navigator) {
  addEventListener("load", () => {
    navigator.serviceWorker.register("/sw.js").catch(() => undefined);
  });
}

const root = document.getElementById("app");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
