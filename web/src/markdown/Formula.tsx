import { createElement, type ReactNode, useEffect, useState } from "react";
import styles from "./markdown.module.css";
import { LONGEST_FORMULA } from "./maths";

/** What KaTeX may make of a formula: MathML that displays something, and nothing that acts. */
const TAGS = new Set(
  `math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup
  msubsup munder mover munderover mtable mtr mtd`.split(/\s+/),
);
const ATTRIBUTES = new Set(
  `display mathvariant stretchy fence separator accent accentunder lspace rspace width height depth
  minsize maxsize linethickness columnalign rowspacing columnspacing columnlines rowlines
  displaystyle scriptlevel notation movablelimits largeop symmetric`.split(/\s+/),
);
const DEEPEST = 60;

/** A formula, drawn by the browser itself. Until KaTeX is loaded, and if it fails, its source. */
export function Formula({ source, display }: { source: string; display: boolean }) {
  const [drawn, setDrawn] = useState<{ source: string; node: ReactNode }>();
  useEffect(() => {
    if (source.length > LONGEST_FORMULA) return;
    let gone = false;
    void draw(source, display)
      .then((node) => {
        if (!gone) setDrawn({ source, node });
      })
      .catch(() => undefined);
    return () => {
      gone = true;
    };
  }, [source, display]);
  const node = drawn?.source === source ? drawn.node : undefined;
  if (!node) return <code>{source}</code>;
  return (
    <span className={styles.formula} data-display={display || undefined} title={source}>
      {node}
    </span>
  );
}

async function draw(source: string, displayMode: boolean): Promise<ReactNode> {
  const { default: katex } = await import("katex");
  const made = katex.renderToString(source, {
    displayMode,
    output: "mathml",
    trust: false,
    strict: false,
    maxExpand: 200,
    maxSize: 20,
    throwOnError: true,
  });
  // Its few styles are left out: the page's rules allow none, and a parser would complain.
  const plain = made.replace(/ style="[^"]*"/g, "");
  const math = new DOMParser().parseFromString(plain, "text/html").querySelector("math");
  return math ? copied(math, 0, 0) : undefined;
}

/** The same elements with what is allowed, made anew: no markup of others is put into the page. */
function copied(element: Element, key: number, depth: number): ReactNode {
  if (depth > DEEPEST) return null;
  const tag = element.localName;
  const children = [...element.childNodes].map((child, index) => {
    if (child.nodeType === Node.TEXT_NODE) return child.textContent;
    return child.nodeType === Node.ELEMENT_NODE ? copied(child as Element, index, depth + 1) : null;
  });
  // The annotation has the source once more, and `semantics` is only around both.
  if (tag === "semantics") return children[0] ?? null;
  if (!TAGS.has(tag)) return null;
  const attributes: Record<string, string | number> = { key };
  for (const { name, value } of [...element.attributes]) {
    if (ATTRIBUTES.has(name)) attributes[name] = value;
  }
  return createElement(tag, attributes, ...children);
}
