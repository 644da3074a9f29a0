import { useEffect, useState } from "react";
import { CodeBlock } from "../session/CodeBlock";
import { text } from "../text";
import { css } from "../ui/css";
import { drawDiagram } from "./drawDiagram";
import styles from "./markdown.module.css";

export { LONGEST_DIAGRAM } from "./drawDiagram";

/** A diagram as a picture, beside its source. What cannot be drawn stays source. */
export function Diagram({ source }: { source: string }) {
  const [drawn, setDrawn] = useState<{ source: string; picture?: string }>();
  const [asSource, setAsSource] = useState(false);
  useEffect(() => {
    let gone = false;
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark")
      ? document.documentElement.dataset.theme === "dark" ||
        matchMedia("(prefers-color-scheme: dark)").matches
      : false;
    drawDiagram(source, dark)
      .then((picture) => {
        if (!gone) setDrawn({ source, picture });
      })
      .catch(() => {
        if (!gone) setDrawn({ source });
      });
    return () => {
      gone = true;
    };
  }, [source]);
  const known = drawn?.source === source ? drawn : undefined;
  if (!known?.picture || asSource) {
    return (
      <>
        <CodeBlock code={source} language="mermaid" />
        <p className={css.texts.muted} role="status">
          {!known && text.markdown.drawing}
          {known && !known.picture && text.markdown.diagramFailed}
        </p>
        {known?.picture && (
          <button
            type="button"
            className={`${css.button.ghost} ${css.button.small}`}
            onClick={() => setAsSource(false)}
          >
            {text.markdown.showDiagram}
          </button>
        )}
      </>
    );
  }
  return (
    <figure className={styles.diagram}>
      <img src={known.picture} alt={`${text.markdown.diagram}: ${source.slice(0, 200)}`} />
      <figcaption>
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => setAsSource(true)}
        >
          {text.markdown.showSource}
        </button>
      </figcaption>
    </figure>
  );
}
