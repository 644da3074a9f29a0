import { memo, useState } from "react";
import { imagesOf, isObject, plainText, text } from "../state/lines";
import type { Entry, Todo, ToolEntry } from "../state/story";
import { editsOf, kindOf, titleOf } from "../state/tools";
import { duration } from "../ui/format";
import { CodeBlock } from "./CodeBlock";
import { Diff } from "./Diff";
import { EntryRow } from "./EntryRow";
import { Terminal } from "./Terminal";

const OPEN_BY_ITSELF = new Set(["edit", "todo"]);

/** A tool call in a line, with what it did under it. */
export const ToolRow = memo(function ToolRow(props: {
  entry: ToolEntry;
  threads: ReadonlyMap<string, readonly Entry[]>;
}) {
  const { entry } = props;
  const kind = kindOf(entry.name);
  const thread = props.threads.get(entry.id);
  const [open, setOpen] = useState(OPEN_BY_ITSELF.has(kind) || entry.failed === true);
  const running = entry.ended === undefined;
  const state = running ? "running" : entry.failed ? "failed" : "done";
  return (
    <div className="tool" data-kind={kind} data-state={state}>
      <button type="button" className="head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="kind">{entry.name}</span>
        <span className="title">{titleOf(entry.name, entry.input)}</span>
        {entry.verdict && entry.verdict.verdict !== "allow" && (
          <span className="verdict">
            {entry.verdict.verdict} by {entry.verdict.by}
          </span>
        )}
        <span className="when">
          {running ? (entry.progress ?? "…") : duration((entry.ended ?? entry.at) - entry.at)}
          <span className="visually-hidden">, {state}</span>
        </span>
      </button>
      {open && (
        <div className="body">
          <Body entry={entry} />
          {entry.verdict && (
            <p className="why">
              {entry.verdict.verdict} by {entry.verdict.by}
              {entry.verdict.reasons.length > 0 && `: ${entry.verdict.reasons.join("; ")}`}
            </p>
          )}
        </div>
      )}
      {thread && thread.length > 0 && (
        <details className="thread" open={running}>
          <summary>{thread.length} steps of the subagent</summary>
          {thread.map((one) => (
            <EntryRow key={one.key} entry={one} threads={props.threads} />
          ))}
        </details>
      )}
    </div>
  );
});

function Body({ entry }: { entry: ToolEntry }) {
  const edits = editsOf(entry.name, entry.input);
  const result = plainText(entry.result);
  const images = imagesOf(entry.result);
  if (entry.name === "TodoWrite") return <Todos raw={entry.input.todos} />;
  return (
    <>
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
      {!edits.length && <Input entry={entry} />}
      {result && (!edits.length || entry.failed) && (
        <Terminal text={result} failed={entry.failed ?? false} />
      )}
      {images.map((image) => (
        <img key={image.slice(-64)} className="picture" src={image} alt="what the tool gave" />
      ))}
    </>
  );
}

function Input({ entry }: { entry: ToolEntry }) {
  if (entry.name === "Bash") {
    return (
      <>
        {text(entry.input.description) && <p className="why">{text(entry.input.description)}</p>}
        <CodeBlock code={text(entry.input.command)} language="bash" />
      </>
    );
  }
  if (!Object.keys(entry.input).length) return null;
  return <CodeBlock code={JSON.stringify(entry.input, null, 2)} language="json" />;
}

const MARKS: Record<string, string> = { completed: "✓", in_progress: "▸" };

/** A list of things to do. */
export function Todos({ raw }: { raw: unknown }) {
  const todos = (Array.isArray(raw) ? raw : [])
    .filter(isObject)
    .map((todo): Todo => ({ content: text(todo.content), status: text(todo.status) }));
  return (
    <ul className="todos">
      {todos.map((todo) => (
        <li key={todo.content} data-status={todo.status}>
          <span aria-hidden="true">{MARKS[todo.status] ?? "○"}</span> {todo.content}
          <span className="visually-hidden">, {todo.status.replace("_", " ")}</span>
        </li>
      ))}
    </ul>
  );
}
