import { memo, type ReactNode, useEffect, useMemo, useState } from "react";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Mark, renderSegments } from "../ui/Marked";
import { cutAt, type Segment, segmentsOf } from "../ui/marks";
import { useCopy } from "../ui/useCopy";
import styles from "./code.module.css";
import { addToCache, cached, type Highlighted, type Piece } from "./highlightCache";

/** A piece of code: plain at once, coloured as soon as its language is loaded. */
export const CodeBlock = memo(function CodeBlock(props: {
  code: string;
  language?: string | undefined;
  /** How many lines are shown; all of them without it. */
  lines?: number | undefined;
}) {
  const { code, language } = props;
  const [found, setFound] = useState<Highlighted>();
  useEffect(() => {
    if (!language || cached(code, language)) return;
    const stop = new AbortController();
    // A block that is still being written would be coloured with every letter: wait for a pause.
    const timer = setTimeout(async () => {
      const { highlight } = await import("./highlight");
      const lines = await highlight(code, language, stop.signal);
      if (stop.signal.aborted || !lines.length) return;
      setFound(addToCache({ code, language, lines }));
    }, 80);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [code, language]);
  const fits = found?.code === code && found.language === language;
  const lines = fits ? found.lines : language ? cached(code, language)?.lines : undefined;
  const segments = useMemo(() => segmentsOf(code, true), [code]);
  const [visible] = cutAt(segments, props.lines ?? Number.POSITIVE_INFINITY);
  return (
    <figure className={styles.block} data-code-block>
      <figcaption>
        <span className={`${css.texts.path} ${styles.path}`} data-path="">
          <bdi>{language ?? catalogue.parts.plainCode}</bdi>
        </span>
        <Copy code={code} />
      </figcaption>
      <pre tabIndex={0}>
        <code className={css.marked.marked} data-code dir="ltr">
          {lines ? renderHighlighted(visible, lines) : renderSegments(visible)}
        </code>
      </pre>
    </figure>
  );
});

/** The segments of a code in its colours. A mark has its own: it is no part of the language. */
export function renderHighlighted(
  segments: readonly Segment[],
  lines: readonly Piece[][],
): ReactNode[] {
  const hues = lines.flatMap((line) => [...line, { content: "\n", style: {} }]);
  const drawn: ReactNode[] = [];
  let hue = 0;
  let left = hues[0]?.content.length ?? 0;
  for (const segment of segments) {
    if (segment.mark !== undefined) drawn.push(<Mark key={drawn.length} segment={segment} />);
    for (let at = 0; at < segment.text.length; ) {
      while (left === 0 && hue < hues.length) left = hues[++hue]?.content.length ?? 0;
      const style = hues[hue]?.style ?? {};
      const end = left ? Math.min(segment.text.length, at + left) : segment.text.length;
      if (segment.mark === undefined) {
        drawn.push(
          <span key={drawn.length} className={styles.hue} style={style as React.CSSProperties}>
            {segment.text.slice(at, end)}
          </span>,
        );
      }
      left = Math.max(0, left - (end - at));
      at = end;
    }
  }
  return drawn;
}

function Copy({ code }: { code: string }) {
  const [copied, copy] = useCopy();
  return (
    <button
      type="button"
      className={`${css.button.ghost} ${css.button.small}`}
      onClick={() => copy(code)}
    >
      {copied ? catalogue.common.copied : catalogue.common.copy}
    </button>
  );
}
