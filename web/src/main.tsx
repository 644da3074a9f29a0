import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/parts.css";
import "./ui/pages.css";
import "./ui/safety.css";
import { watchFaults } from "./ui/faults";
import { copyTrueText } from "./ui/Marked";
import { showTheme } from "./ui/wishes";

showTheme();
watchFaults();
document.addEventListener("copy", copyTrueText);

const place = document.getElementById("deck");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
