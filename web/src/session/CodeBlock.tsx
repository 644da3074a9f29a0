import { memo, useEffect, useState } from "react";
import { type Coloured, known, remember } from "./colours";

/** A piece of code: plain at once, coloured as soon as its language is loaded. */
export const CodeBlock = memo(function CodeBlock(props: {
  code: string;
  language?: string | undefined;
}) {
  const { code, language } = props;
  const [found, setFound] = useState<Coloured>();
  useEffect(() => {
    if (!language || known(code, language)) return;
    const stop = new AbortController();
    // A block that is still being written would be coloured with every letter: wait for a pause.
    const timer = setTimeout(async () => {
      const { coloured } = await import("./highlight");
      const lines = await coloured(code, language, stop.signal);
      if (stop.signal.aborted || !lines.length) return;
      setFound(remember({ code, language, lines }));
    }, 80);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [code, language]);
  const fits = found?.code === code && found.language === language;
  const lines = fits ? found.lines : language ? known(code, language)?.lines : undefined;
  return (
    <figure className="code">
      <figcaption>
        <span className="path">
          <bdi>{language ?? "text"}</bdi>
        </span>
        <Copy code={code} />
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
            : code}
        </code>
      </pre>
    </figure>
  );
});

function Copy({ code }: { code: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className="ghost small" onClick={() => void copy()}>
      {copied ? "Copied" : "Copy"}
    </button>
  );
}
