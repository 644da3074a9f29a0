import type { List, ListItem, Nodes, Table } from "mdast";
import {
  createContext,
  memo,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useReducer,
  useRef,
} from "react";
import { Link } from "wouter";
import { CodeBlock } from "../session/CodeBlock";
import { OpenSession, WorkingDirectory } from "../session/relativePath";
import { text } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { type Block, finishing, grow, NO_SESSIONS, type Parsed, sliced } from "./blocks";
import { Diagram, LONGEST_DIAGRAM } from "./Diagram";
import { Formula } from "./Formula";
import { fileAddress, localFile } from "./localLink";
import styles from "./markdown.module.css";
import { piecesOf } from "./slices";

// An agent's text is untrusted. HTML in it is left out, links open in another tab and show their
// target, and an image is a link: nothing is fetched because of an agent's text.

const SAFE = /^(https?:|mailto:)/i;
/** Nested deeper than people write: the rest is shown as plain text, so that no browser breaks. */
const DEEPEST = 20;

/** Whether a person decides by the text: then nothing in it may be hidden. */
const Careful = createContext(false);
/** Whether the text is still being generated: what is not complete is not drawn. */
const Live = createContext(false);

/** Markdown, complete or still being generated. With `careful`, also the parts that Markdown hides. */
export const Markdown = memo(function Markdown(props: {
  text: string;
  live?: boolean;
  careful?: boolean;
}) {
  const { live = false } = props;
  const blocks = useBlocks(props.text, live);
  return (
    <Careful value={props.careful ?? false}>
      <Live value={live}>
        <div className={styles.prose} data-live={live || undefined}>
          {blocks.map((block) => (
            <Drawn key={block.start} node={block.node} />
          ))}
        </div>
      </Live>
    </Careful>
  );
});

/** How long a text is parsed before the page may do something else, in milliseconds. */
const SLICE = 24;

/** The blocks of a text. A long one is parsed in slices; what is left is shown as it is. */
function useBlocks(text: string, live: boolean): readonly Block[] {
  const before = useRef<Parsed>(NO_SESSIONS);
  const [, drawAgain] = useReducer((count: number) => count + 1, 0);
  const [done, slicing] = useMemo(() => {
    if (live) {
      before.current = grow(before.current, text);
      return [before.current.blocks, undefined] as const;
    }
    const begun = before.current === NO_SESSIONS ? ([[], sliced(text)] as const) : undefined;
    const found = begun ?? finishing(before.current, text);
    before.current = { text, live: false, blocks: [] };
    found[1].more(SLICE);
    return found;
  }, [text, live]);
  useEffect(() => {
    if (!slicing || slicing.done) return;
    const timer = setTimeout(() => {
      slicing.more(SLICE);
      drawAgain();
    });
    return () => clearTimeout(timer);
  });
  return slicing ? [...done, ...slicing.blocks()] : done;
}

/** A block, rendered again only when it changes. */
const Drawn = memo(({ node }: { node: Block["node"] }) => drawn(node, 0));

function all(nodes: readonly Nodes[], depth: number): ReactNode[] {
  return nodes.map((node, index) => <Inner key={index} node={node} depth={depth} />);
}

function Inner({ node, depth }: { node: Nodes; depth: number }): ReactNode {
  return drawn(node, depth);
}

function drawn(node: Nodes, depth: number): ReactNode {
  if (depth > DEEPEST) return plain(node);
  const below = depth + 1;
  switch (node.type) {
    case "text":
      return <Words text={node.value} />;
    case "paragraph":
      if (node.data?.asItIs) return <AsItIs text={plain(node)} />;
      return <p>{all(node.children, below)}</p>;
    case "heading": {
      const Head = `h${node.depth}` as const;
      return <Head>{all(node.children, below)}</Head>;
    }
    case "emphasis":
      return <em>{all(node.children, below)}</em>;
    case "strong":
      return <strong>{all(node.children, below)}</strong>;
    case "delete":
      return <del>{all(node.children, below)}</del>;
    case "inlineCode":
      return (
        <code>
          <Words text={node.value} />
        </code>
      );
    case "break":
      return <br />;
    case "code":
      return (
        <>
          {node.meta && <Hidden text={node.meta} />}
          <Code code={node.value} language={node.lang ?? undefined} />
        </>
      );
    case "inlineMath":
      return <Maths source={node.value} display={node.display} />;
    case "link":
      return (
        <TextLink to={node.url} title={node.title} text={plain(node)}>
          {all(node.children, below)}
        </TextLink>
      );
    case "image":
      return (
        <TextLink to={node.url} title={node.title} text={node.alt ?? ""}>
          {node.alt ? <Words text={node.alt} /> : SAFE.test(node.url) ? text.markdown.picture : ""}
        </TextLink>
      );
    case "blockquote":
      return <blockquote>{all(node.children, below)}</blockquote>;
    case "list":
      return <Items list={node} depth={below} />;
    case "table":
      return <Cells table={node} depth={below} />;
    case "thematicBreak":
      return <hr />;
    case "footnoteReference":
      return <sup>[{node.label ?? node.identifier}]</sup>;
    case "footnoteDefinition":
      return (
        <section className={styles.footnote}>
          <sup>[{node.label ?? node.identifier}]</sup> <div>{all(node.children, below)}</div>
        </section>
      );
    case "html":
      return <Hidden text={node.value} />;
    case "definition":
      return <Hidden text={[`[${node.label}]:`, node.url, node.title].filter(Boolean).join(" ")} />;
    default:
      return null;
  }
}

/** A text that is not parsed, in pieces: when it grows, only its last piece is laid out again. */
function AsItIs(props: { text: string }) {
  return (
    <p className={styles.asItIs}>
      {piecesOf(props.text).map((piece, index) => (
        <Piece key={index} text={piece} />
      ))}
    </p>
  );
}

const Piece = memo((props: { text: string }) => (
  <span>
    <Words text={props.text} />
  </span>
));

/** Code; diagrams and formulas are drawn, except where a person decides by the text. */
function Code({ code, language }: { code: string; language: string | undefined }): ReactNode {
  const careful = useContext(Careful);
  const live = useContext(Live);
  if (!careful && !live && language === "mermaid" && code.length <= LONGEST_DIAGRAM) {
    return <Diagram source={code} />;
  }
  if (!careful && !live && (language === "math" || language === "latex")) {
    return <Formula source={code} display />;
  }
  return <CodeBlock code={code} language={language} />;
}

function Maths({ source, display }: { source: string; display: boolean }): ReactNode {
  if (useContext(Careful)) return <Words text={display ? `$$${source}$$` : `$${source}$`} />;
  return <Formula source={source} display={display} />;
}

function Words(props: { text: string }): ReactNode {
  return useContext(Careful) ? <Marked text={props.text} /> : props.text;
}

/** A part of the source that Markdown does not display, such as HTML. */
function Hidden({ text: hidden }: { text: string }): ReactNode {
  if (!useContext(Careful)) return null;
  return (
    <>
      {" "}
      <code className={styles.rawHtml}>
        <Marked text={hidden} code />
      </code>
    </>
  );
}

/** The text below a node. Not recursive: such nodes are deep. */
function plain(node: Nodes): string {
  const found: string[] = [];
  const waiting: Nodes[] = [node];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (next.type === "text" || next.type === "inlineCode" || next.type === "code")
      found.push(next.value);
    if ("children" in next) waiting.push(...[...next.children].reverse());
  }
  return found.join(" ");
}

/** A host in a text: after a scheme, or by a common ending. `app.py` is a file. */
const ADDRESS =
  /https?:\/\/(?:[^\s/@]*@)?([\w.-]+)|((?:[\w-]+\.)+(?:com|org|net|io|dev|app|ai|gov|edu|co|uk|de|eu))\b/gi;

/** The host that a link leads to, if its text names another one. A phone shows no title. */
function otherHost(text: string, to: string): string | undefined {
  const named = [...text.matchAll(ADDRESS)].map((found) => (found[1] ?? found[2])?.toLowerCase());
  if (named.length === 0) return undefined;
  try {
    const host = new URL(to).hostname.toLowerCase();
    return named.every((name) => name === host || host === `www.${name}`) ? undefined : host;
  } catch {
    return undefined;
  }
}

interface TextLinkProps {
  to: string;
  title?: string | null | undefined;
  /** The text of the link. */
  text: string;
  children: ReactNode;
}

function TextLink(props: TextLinkProps) {
  const { to, children } = props;
  const other = otherHost(props.text, to);
  const hidden = <Hidden text={[to, props.title].filter(Boolean).join(" ")} />;
  const file = SAFE.test(to) ? undefined : localFile(to);
  const session = useContext(OpenSession);
  const folder = useContext(WorkingDirectory);
  if (file && session) {
    return (
      <>
        <Link href={fileAddress(session, folder, file)} title={to}>
          {children}
        </Link>
        {hidden}
      </>
    );
  }
  if (!SAFE.test(to)) {
    return (
      <span>
        {children}
        {hidden}
      </span>
    );
  }
  return (
    <>
      <a href={to} target="_blank" rel="noopener noreferrer nofollow" title={to}>
        {children}
      </a>
      {other ? <span className={styles.leads}> {text.markdown.leadsTo(other)}</span> : null}
      {hidden}
    </>
  );
}

function Items({ list, depth }: { list: List; depth: number }) {
  const loose = list.spread || list.children.some((item) => item.spread);
  const items = list.children.map((item, index) => (
    <li key={index} className={typeof item.checked === "boolean" ? styles.task : undefined}>
      {typeof item.checked === "boolean" && <Check done={item.checked} />}
      {loose ? all(item.children, depth) : tight(item, depth)}
    </li>
  ));
  return list.ordered ? <ol start={list.start ?? 1}>{items}</ol> : <ul>{items}</ul>;
}

/** An item without blank lines around it: its text is not a paragraph. */
function tight(item: ListItem, depth: number): ReactNode[] {
  return item.children.flatMap((child, index): ReactNode[] =>
    child.type === "paragraph"
      ? all(child.children, depth)
      : [<Inner key={`block ${index}`} node={child} depth={depth} />],
  );
}

function Check({ done }: { done: boolean }) {
  return (
    <>
      <span aria-hidden="true">{done ? "✓" : "○"}</span>
      <span className={css.texts.visuallyHidden}>
        {done ? text.markdown.done : text.markdown.toDo}
      </span>{" "}
    </>
  );
}

function Cells({ table, depth }: { table: Table; depth: number }) {
  const [head, ...rows] = table.children;
  const place = (index: number) => ({ textAlign: table.align?.[index] ?? undefined });
  return (
    <div className={css.table.wrap} data-scrolls="" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, index) => (
              <th key={index} style={place(index)}>
                {all(cell.children, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.children.map((cell, index) => (
                <td key={index} style={place(index)}>
                  {all(cell.children, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
