import { memo } from "react";
import remarkGfm from "remark-gfm";
import { type Components, Streamdown } from "streamdown";
import { CodeBlock } from "./CodeBlock";

// An agent's text is untrusted. HTML in it is left out, links open elsewhere and only where a person
// can see where to, and a picture is a link: nothing is fetched because an agent said so.

const SAFE = /^(https?:|mailto:)/i;

const components: Components = {
  a: ({ href, children }) =>
    href && SAFE.test(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) => {
    const address = typeof src === "string" ? src : "";
    return SAFE.test(address) ? (
      <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
        {alt || "picture"} ↗
      </a>
    ) : (
      <span>{alt}</span>
    );
  },
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children, node: _, ...rest }) => {
    const code = String(children ?? "");
    const language = /language-([\w+-]+)/.exec(className ?? "")?.[1];
    const fenced = "data-block" in rest || language !== undefined || code.includes("\n");
    return fenced ? (
      <CodeBlock code={code.replace(/\n$/, "")} language={language} />
    ) : (
      <code>{code}</code>
    );
  },
  table: ({ children }) => (
    <div className="table-wrap">
      <table>{children}</table>
    </div>
  ),
};

const remarkPlugins = [remarkGfm];

/** Text as it comes, or as it came. */
export const Markdown = memo(function Markdown(props: { text: string; live?: boolean }) {
  return (
    <div className="prose" data-live={props.live || undefined}>
      <Streamdown
        mode={props.live ? "streaming" : "static"}
        parseIncompleteMarkdown={props.live ?? false}
        controls={false}
        skipHtml
        remarkPlugins={remarkPlugins}
        rehypePlugins={[]}
        components={components}
      >
        {props.text}
      </Streamdown>
    </div>
  );
});
