import Anser from "anser";
import { memo, useMemo, useState } from "react";

const SHORT = 12;
const MOST = 200_000;

/** Output as a terminal would show it, with its colours; long output is folded. */
export const Terminal = memo(function Terminal({
  text,
  failed,
}: {
  text: string;
  failed?: boolean;
}) {
  const [whole, setWhole] = useState(false);
  const lines = text.replace(/\n$/, "").split("\n");
  const long = lines.length > SHORT;
  const shown = whole || !long ? text.slice(0, MOST) : lines.slice(0, SHORT).join("\n");
  const pieces = useMemo(() => Anser.ansiToJson(shown, { use_classes: true }), [shown]);
  return (
    <div className="terminal" data-failed={failed || undefined}>
      <pre tabIndex={0}>
        {pieces.map((piece, index) => (
          <span
            key={index}
            className={[piece.fg, piece.bg && `${piece.bg}-bg`, ...piece.decorations]
              .filter(Boolean)
              .join(" ")}
          >
            {piece.content}
          </span>
        ))}
      </pre>
      {long && (
        <button type="button" className="ghost small" onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
});
