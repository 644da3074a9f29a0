import { memo, useState } from "react";
import { Members, Says } from "../asks/CallContent";
import { contentOf } from "../asks/content";
import { Markdown } from "../markdown/Markdown";
import { imagesOf, isObject, plainText, text } from "../state/lines";
import { lookup } from "../state/lookup";
import type { Entry, Task, Todo, ToolEntry } from "../state/story";
import { type Found, foundBy, kindOf, madeEdits, readBy, titleOf, toolName } from "../state/tools";
import { duration, plural, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { CodeBlock } from "./CodeBlock";
import { Diff } from "./Diff";
import { EntryRow } from "./EntryRow";
import { useShort } from "./folder";
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
  const [open, setOpen] = useState(OPEN_BY_ITSELF.has(kind));
  const title = useShort(titleOf(entry.name, entry.input));
  const state = stateOf(entry);
  const refused = entry.verdict && entry.verdict.verdict !== "allow" ? entry.verdict : undefined;
  return (
    <div className="tool" data-kind={kind} data-state={state}>
      <button type="button" className="head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="kind">
          <Marked text={toolName(entry.name)} code />
        </span>
        <span className="title">{title !== entry.name && <Marked text={title} code />}</span>
        {refused && (
          <span className="verdict">
            {lookup(WORDS, refused.verdict) ?? refused.verdict} by {refused.by}
          </span>
        )}
        <span className="when">
          {state === "failed" && <span className="failed">failed</span>} {whenOf(entry)}
          {state !== "failed" && <span className="visually-hidden">, {state}</span>}
        </span>
      </button>
      {entry.task && <TaskLine task={entry.task} />}
      {open && (
        <div className="body">
          <Body entry={entry} />
          {entry.verdict && (
            <p className="why">
              {lookup(WORDS, entry.verdict.verdict) ?? entry.verdict.verdict} by {entry.verdict.by}
              {entry.verdict.reasons.length > 0 && (
                <>
                  : <Marked text={entry.verdict.reasons.join("; ")} />
                </>
              )}
            </p>
          )}
        </div>
      )}
      {thread && thread.length > 0 && <Thread entries={thread} threads={props.threads} />}
    </div>
  );
});

const WORDS: Record<string, string> = { allow: "allowed", deny: "denied", ask: "asked about" };
const OVER = new Set(["completed", "failed", "stopped", "killed"]);

function stateOf(entry: ToolEntry): "running" | "failed" | "done" {
  if (entry.task && !OVER.has(entry.task.status)) return "running";
  if (entry.ended === undefined) return "running";
  return entry.failed || entry.task?.status === "failed" ? "failed" : "done";
}

function whenOf(entry: ToolEntry): string {
  if (entry.task && entry.task.at > (entry.ended ?? 0)) return "";
  if (entry.ended === undefined) return entry.progress ?? "…";
  return duration(entry.ended - entry.at);
}

/** What became of a task, or what it does. */
export function TaskLine({ task }: { task: Task }) {
  const over = OVER.has(task.status);
  const parts = [
    over ? task.status : "runs in the background",
    duration(task.at - task.began),
    task.steps !== undefined && plural(task.steps, "call"),
    task.tokens !== undefined && `${tokens(task.tokens)} tokens`,
    task.detail,
  ];
  return (
    <p className="task-line" data-over={over || undefined}>
      <Marked text={parts.filter(Boolean).join(" · ")} />
    </p>
  );
}

/** What a subagent does. Most of it is drawn only when somebody looks. */
function Thread(props: {
  entries: readonly Entry[];
  threads: ReadonlyMap<string, readonly Entry[]>;
}) {
  const [open, setOpen] = useState(false);
  return (
    <details className="thread" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{plural(props.entries.length, "step")} of the subagent</summary>
      {open &&
        props.entries.map((one) => <EntryRow key={one.key} entry={one} threads={props.threads} />)}
    </details>
  );
}

function Body({ entry }: { entry: ToolEntry }) {
  const edits = madeEdits(entry.name, entry.input, entry.structured);
  const result = plainText(entry.result);
  const images = imagesOf(entry.result);
  const read = kindOf(entry.name) === "read" ? readBy(entry.structured) : undefined;
  const found = entry.name === "WebSearch" ? foundBy(entry.structured, result) : [];
  if (entry.name === "TodoWrite") return <Todos raw={entry.input.todos} />;
  return (
    <>
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
      {edits.length > 0 && (
        <Members
          members={contentOf(entry.name, entry.input).members}
          lines={Number.POSITIVE_INFINITY}
        />
      )}
      {!edits.length && !read && <Input entry={entry} />}
      {read && <CodeBlock code={read.content} language={text(entry.input.file_path)} />}
      {found.length > 0 && <Links found={found} />}
      {result && !read && !found.length && (!edits.length || entry.failed) && (
        <Result entry={entry} text={result} />
      )}
      {images.map((image) => (
        <img key={image.slice(-64)} className="picture" src={image} alt="what the tool gave" />
      ))}
    </>
  );
}

function Result({ entry, text: said }: { entry: ToolEntry; text: string }) {
  const kind = kindOf(entry.name);
  if ((kind === "agent" || kind === "web") && !entry.failed) return <Markdown text={said} />;
  return <Terminal text={said} failed={entry.failed ?? false} />;
}

/** What a search in the web found. */
function Links({ found }: { found: Found[] }) {
  return (
    <ol className="links">
      {found.map((one) => (
        <li key={one.url}>
          <a href={one.url} target="_blank" rel="noopener noreferrer nofollow" title={one.url}>
            {one.title}
          </a>{" "}
          <span className="why">{new URL(one.url).host}</span>
        </li>
      ))}
    </ol>
  );
}

function Input({ entry }: { entry: ToolEntry }) {
  if (entry.name === "Bash") {
    const content = contentOf(entry.name, entry.input);
    return (
      <>
        {content.says && <Says words={content.says} />}
        <CodeBlock code={text(entry.input.command)} language="bash" />
        <Members members={content.members} lines={Number.POSITIVE_INFINITY} />
      </>
    );
  }
  if (kindOf(entry.name) === "agent" && text(entry.input.prompt)) {
    return <Markdown text={text(entry.input.prompt)} careful />;
  }
  if (entry.name === "WebSearch" || !Object.keys(entry.input).length) return null;
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
          <span aria-hidden="true">{lookup(MARKS, todo.status) ?? "○"}</span>{" "}
          <Marked text={todo.content} />
          <span className="visually-hidden">, {todo.status.replace("_", " ")}</span>
        </li>
      ))}
    </ul>
  );
}
