import { CodeBlock } from "../session/CodeBlock";
import { Diff } from "../session/Diff";
import { plural } from "../ui/format";
import { Marked } from "../ui/Marked";
import { cutAt, segmentsOf } from "../ui/marks";
import type { Content, Member } from "./content";

/** What a call would do, whole but for what is folded. */
export function CallContent(props: {
  tool: string;
  title: string;
  content: Content;
  /** Lines of each part that are shown, and how many are not. */
  lines: number;
  hidden: number;
  onMore: () => void;
}) {
  const { content } = props;
  const isJson = content.parts.some((part) => part.kind === "code" && part.language === "json");
  return (
    <>
      {isJson && (
        <h3>
          <Marked text={props.tool} code />: <Marked text={props.title} code />
        </h3>
      )}
      {content.says && <Says words={content.says} />}
      {content.parts.map((part, index) =>
        part.kind === "diff" ? (
          <Diff key={index} edit={part.edit} rows={props.lines} />
        ) : (
          <CodeBlock key={index} code={part.code} language={part.language} lines={props.lines} />
        ),
      )}
      {props.tool === "Write" && (
        <p className="why">This is the whole file: what it has now is replaced.</p>
      )}
      <Members members={content.members} lines={props.lines} />
      {props.hidden > 0 && (
        <p className="folded">
          <button type="button" onClick={props.onMore}>
            Show {plural(props.hidden, "more line")}
          </button>{" "}
          It can be allowed when all of it is shown.
        </p>
      )}
    </>
  );
}

/** The agent's own words about its call: they are no more than that. */
export function Says({ words }: { words: string }) {
  return (
    <p className="says">
      <span className="who-says">The agent says:</span> «<Marked text={words} />»
    </p>
  );
}

/** What else the tool is called with. */
export function Members({ members, lines }: { members: readonly Member[]; lines: number }) {
  if (!members.length) return null;
  return (
    <dl className="members">
      {members.map(({ name, value, warning }) => (
        <div key={name} data-warning={warning ? true : undefined}>
          <dt>
            {warning && <span aria-hidden="true">⚠ </span>}
            <Marked text={name} code />
          </dt>
          <dd>
            <Marked
              text={cutAt(segmentsOf(value), lines)[0]
                .map((one) => one.text)
                .join("")}
              code
            />
            {warning && <span className="warning"> {warning}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A call in a list, where it is shown whole or opened. */
export function SmallContent(props: {
  tool: string;
  title: string;
  content: Content;
  whole: boolean;
}) {
  const { content } = props;
  if (!props.whole) {
    return (
      <p className="what">
        <strong>
          <Marked text={props.tool} code />
        </strong>{" "}
        <code className="clamped">
          <Marked text={props.title} code />
        </code>
      </p>
    );
  }
  return (
    <>
      {content.says && <Says words={content.says} />}
      <p className="what">
        <strong>
          <Marked text={props.tool} code />
        </strong>{" "}
        {content.parts.map((part, index) => (
          <code key={index}>{part.kind === "code" && <Marked text={part.code} code />}</code>
        ))}
      </p>
      <Members members={content.members} lines={Number.POSITIVE_INFINITY} />
    </>
  );
}
