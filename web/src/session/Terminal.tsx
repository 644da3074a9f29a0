import Anser from "anser";
import { memo, useMemo, useState } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import { renderSegments } from "../ui/Marked";
import { segmentsOf } from "../ui/marks";
import styles from "./code.module.css";

const SHORT = 12;
const MOST = 200_000;

/** Output as a terminal would show it, with its colours; long output is folded. */
export const Terminal = memo(function Terminal({
  text: given,
  failed,
  bare,
}: {
  text: string;
  failed?: boolean;
  /** Without a box of its own, and not folded. */
  bare?: boolean;
}) {
  const [whole, setWhole] = useState(false);
  // What a progress bar overwrites becomes lines: nothing is hidden that way.
  const output = given.replace(/\r\n?/g, "\n");
  const lines = output.replace(/\n$/, "").split("\n");
  const long = !bare && lines.length > SHORT;
  const shown = whole || !long ? output.slice(0, MOST) : lines.slice(0, SHORT).join("\n");
  const pieces = useMemo(() => Anser.ansiToJson(shown, { use_classes: true }), [shown]);
  return (
    <div
      className={styles.terminal}
      data-failed={failed || undefined}
      data-bare={bare || undefined}
    >
      <pre tabIndex={bare ? undefined : 0} className={css.marked.marked} dir="ltr">
        {pieces.map((piece, index) => (
          <span
            key={index}
            data-fg={piece.fg || undefined}
            data-look={piece.decorations.join(" ") || undefined}
          >
            {renderSegments(segmentsOf(piece.content))}
          </span>
        ))}
      </pre>
      {long && (
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => setWhole(!whole)}
        >
          {whole ? text.story.showLess : text.story.allLines(lines.length)}
        </button>
      )}
    </div>
  );
});
