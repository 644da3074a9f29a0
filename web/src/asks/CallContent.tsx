import type { RefObject } from "react";
import { CodeBlock } from "../session/CodeBlock";
import { Diff } from "../session/Diff";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { cutAt, segmentsOf } from "../ui/marks";
import styles from "./asks.module.css";
import type { Content, Member } from "./callContent";
import { type CurrentFile, replacementText, surroundingsText } from "./currentFile";

const words = catalogue.asks;

/** What a call would do: all of it, except for folded lines. */
export function CallContent(props: {
  tool: string;
  title: string;
  content: Content;
  /** Lines of each part that are shown, and how many are not. */
  lines: number;
  hidden: number;
  /** The file that the call changes. */
  current: CurrentFile;
  reading: boolean;
  place: RefObject<HTMLDivElement | null>;
  onMore: () => void;
}) {
  const { content } = props;
  const written = content.parts.find((part) => part.kind === "diff")?.edit.after ?? "";
  const about =
    props.tool === "Write"
      ? replacementText(props.current, written, props.reading)
      : surroundingsText(props.current, props.reading);
  const isJson = content.parts.some((part) => part.kind === "code" && part.language === "json");
  return (
    <>
      {isJson && (
        <h2>
          <Marked text={props.tool} code />: <Marked text={props.title} code />
        </h2>
      )}
      {content.description && <AgentDescription text={content.description} />}
      {content.parts.map((part, index) =>
        part.kind === "diff" ? (
          <Diff key={index} edit={part.edit} rows={props.lines} />
        ) : (
          <CodeBlock key={index} code={part.code} language={part.language} lines={props.lines} />
        ),
      )}
      {(props.tool === "Write" || props.tool === "Edit") && (
        <div ref={props.place}>
          {about && <p className={css.texts.muted}>{about}</p>}
          {props.current.changed && (
            <p className={css.note.note} data-tone="warn" role="status">
              {words.fileChanged}
            </p>
          )}
        </div>
      )}
      <Members members={content.members} lines={props.lines} />
      {props.hidden > 0 && (
        <p className={styles.hiddenLines}>
          <button type="button" onClick={props.onMore}>
            {words.showMore(props.hidden)}
          </button>{" "}
          {words.showAllFirst}
        </p>
      )}
    </>
  );
}

/** The agent's own description of its call. It proves nothing about the call. */
export function AgentDescription({ text }: { text: string }) {
  return (
    <p className={styles.agentDescription}>
      <span className={styles.label}>{words.agentSays}</span> “<Marked text={text} />”
    </p>
  );
}

/** The other members of the tool's input. */
export function Members({ members, lines }: { members: readonly Member[]; lines: number }) {
  if (!members.length) return null;
  return (
    <dl className={styles.members}>
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
            {warning && <span className={styles.warning}> {warning}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
