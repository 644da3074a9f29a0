// Diagrams are drawn in a frame without an origin, and shown as a picture. The source is an agent's: in
// the frame it can reach nothing, in a picture nothing acts, and a frame that takes too long is removed.

import { text } from "../text";
import styles from "./markdown.module.css";

/** Letters of a diagram that is drawn. */
export const LONGEST_DIAGRAM = 5_000;
/** Letters of a picture. */
const LONGEST_PICTURE = 2_000_000;
/** In ms, with the time to load the drawing program. */
const LONGEST_TIME = 20_000;
const PAGE = "/diagram/index.html";

/** One at a time: a text may have many. */
let last: Promise<unknown> = Promise.resolve();

/** The diagram as a picture's address; rejected if it cannot be drawn. */
export function drawDiagram(source: string, dark: boolean): Promise<string> {
  const drawn = last.then(() => inFrame(source, dark)).then(pictureOf);
  last = drawn.catch(() => undefined);
  return drawn;
}

async function inFrame(source: string, dark: boolean): Promise<string> {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  frame.className = styles.drawing ?? "";
  frame.src = PAGE;
  const stop = new AbortController();
  try {
    return await new Promise<string>((done, failed) => {
      const heard = ({ source: from, data }: MessageEvent<unknown>): void => {
        if (from !== frame.contentWindow || typeof data !== "object" || data === null) return;
        const said = data as { ready?: unknown; svg?: unknown };
        // The frame has no origin that could be named; only this document is in it.
        if (said.ready === true) frame.contentWindow?.postMessage({ source, dark }, "*");
        else if (typeof said.svg === "string") done(said.svg);
        else failed(new Error(text.markdown.noDiagram));
      };
      window.addEventListener("message", heard, { signal: stop.signal });
      const timer = setTimeout(() => failed(new Error(text.markdown.tooSlow)), LONGEST_TIME);
      stop.signal.addEventListener("abort", () => clearTimeout(timer));
      document.body.append(frame);
    });
  } finally {
    stop.abort();
    frame.remove();
  }
}

/** Nothing acts in a picture: it runs no script, and loads nothing. The frame has cleaned it before. */
function pictureOf(svg: string): string {
  if (svg.length > LONGEST_PICTURE) throw new Error(text.markdown.tooLarge);
  if (!svg.startsWith("<svg")) throw new Error(text.markdown.noPicture);
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
