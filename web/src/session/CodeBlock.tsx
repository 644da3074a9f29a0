import { memo, useEffect, useState } from "react";

type Piece = { content: string; style: Record<string, string> };

/** A piece of code: plain at once, coloured as soon as its language is loaded. */
export const CodeBlock = memo(function CodeBlock(props: {
  code: string;
  language?: string | undefined;
}) {
  const [lines, setLines] = useState<Piece[][]>();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    let wanted = true;
    setLines(undefined);
    if (!props.language) return;
    // A block that is still being written would be coloured with every letter: wait for a pause.
    const timer = setTimeout(async () => {
      const { coloured, languageOf } = await import("./highlight");
      const language = languageOf(props.language);
      if (!language) return;
      const found = await coloured(props.code, language);
      if (wanted && found.length) {
        setLines(
          found.map((line) =>
            line.map((token) => ({
              content: token.content,
              style: typeof token.htmlStyle === "object" ? token.htmlStyle : {},
            })),
          ),
        );
      }
    }, 60);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [props.code, props.language]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(props.code);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <figure className="code">
      <figcaption>
        <span className="path">
          <bdi>{props.language ?? "text"}</bdi>
        </span>
        <button type="button" className="ghost small" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
      </figcaption>
      <pre tabIndex={0}>
        <code>
          {lines
            ? lines.map((line, index) => (
                <span key={index}>
                  {line.map((piece, at) => (
                    <span key={at} className="hue" style={piece.style as React.CSSProperties}>
                      {piece.content}
                    </span>
                  ))}
                  {"\n"}
                </span>
              ))
            : props.code}
        </code>
      </pre>
    </figure>
  );
});
