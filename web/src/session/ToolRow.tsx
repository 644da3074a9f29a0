import { memo, useState } from "react";
import { AgentDescription, Members } from "../asks/CallContent";
import { contentOf } from "../asks/callContent";
import { Markdown } from "../markdown/Markdown";
import { imagesOf, isObject, plainText, text } from "../state/contentBlocks";
import { lookup } from "../state/lookup";
import type { Entry, Task, ToolEntry } from "../state/story";
import {
  appliedEdits,
  type Found,
  kindOf,
  readResult,
  searchResults,
  titleOf,
  toolName,
} from "../state/tools";
import { duration, plural, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { CodeBlock } from "./CodeBlock";
import { Diff } from "./Diff";
import { EntryRow } from "./EntryRow";
import { useRelativePath } from "./relativePath";
import { SandboxRefusals } from "./SandboxRefusals";
import { Terminal } from "./Terminal";
import styles from "./tool.module.css";

const OPEN_BY_ITSELF = new Set(["edit", "todo"]);

/** A tool call in one line, with its result below. */
export const ToolRow = memo(function ToolRow(props: {
  entry: ToolEntry;
  threads: ReadonlyMap<string, readonly Entry[]>;
}) {
  const { entry } = props;
  const kind = kindOf(entry.name);
  const thread = props.threads.get(entry.id);
  const [open, setOpen] = useState(OPEN_BY_ITSELF.has(kind));
  const title = useRelativePath(titleOf(entry.name, entry.input));
  const state = stateOf(entry);
  const refused = entry.verdict && entry.verdict.verdict !== "allow" ? entry.verdict : undefined;
  return (
    <div className={styles.row} data-kind={kind} data-state={state}>
      <button
        type="button"
        className={styles.head}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <span className={styles.kind}>
          <Marked text={toolName(entry.name)} code />
        </span>
        <span className={styles.title}>{title !== entry.name && <Marked text={title} code />}</span>
        {refused && (
          <span className={styles.verdict}>
            {lookup(WORDS, refused.verdict) ?? refused.verdict} by {refused.by}
          </span>
        )}
        <span className={styles.when}>
          {SHOWN.has(state) && <span className={styles.failed}>{state}</span>} {whenOf(entry)}
          {!SHOWN.has(state) && <span className="visually-hidden">, {state}</span>}
        </span>
      </button>
      {entry.refusals && <SandboxRefusals refusals={entry.refusals} />}
      {entry.task && <TaskLine task={entry.task} />}
      {open && (
        <div className={styles.body}>
          <Body entry={entry} />
          {entry.verdict && (
            <p className="muted">
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
export const FINISHED = new Set(["completed", "failed", "stopped", "killed"]);

type State = "running" | "interrupted" | "failed" | "done";
/** States that are shown in words. */
const SHOWN: ReadonlySet<State> = new Set<State>(["failed", "interrupted"]);

function stateOf(entry: ToolEntry): State {
  if (entry.interrupted) return "interrupted";
  if (entry.task && !FINISHED.has(entry.task.status)) return "running";
  if (entry.ended === undefined) return "running";
  return entry.failed || entry.task?.status === "failed" ? "failed" : "done";
}

function whenOf(entry: ToolEntry): string {
  if (entry.interrupted) return "";
  if (entry.task && entry.task.at > (entry.ended ?? 0)) return "";
  if (entry.ended === undefined) return entry.progress ?? "…";
  return duration(entry.ended - entry.at);
}

/** The state of a task, its duration and its progress. */
export function TaskLine({ task }: { task: Task }) {
  const over = FINISHED.has(task.status);
  const parts = [
    over ? task.status : "running in the background",
    duration(task.at - task.began),
    task.steps !== undefined && plural(task.steps, "call"),
    task.tokens !== undefined && `${tokens(task.tokens)} tokens`,
    task.detail,
  ];
  return (
    <p className={styles.taskLine} data-over={over || undefined}>
      <Marked text={parts.filter(Boolean).join(" · ")} />
    </p>
  );
}

/** The steps of a subagent, rendered when they are opened. */
function Thread(props: {
  entries: readonly Entry[];
  threads: ReadonlyMap<string, readonly Entry[]>;
}) {
  const [open, setOpen] = useState(false);
  return (
    <details
      className={styles.thread}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>Subagent: {plural(props.entries.length, "step")}</summary>
      {open &&
        props.entries.map((one) => <EntryRow key={one.key} entry={one} threads={props.threads} />)}
    </details>
  );
}

function Body({ entry }: { entry: ToolEntry }) {
  const edits = appliedEdits(entry.name, entry.input, entry.structured);
  const result = plainText(entry.result);
  const images = imagesOf(entry.result);
  const read = kindOf(entry.name) === "read" ? readResult(entry.structured) : undefined;
  const found = entry.name === "WebSearch" ? searchResults(entry.structured, result) : [];
  if (entry.name === "TodoWrite") return <Todos todos={todosOf(entry.input.todos)} />;
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
        <img key={image.slice(-64)} className="picture" src={image} alt="tool result" />
      ))}
    </>
  );
}

function Result({ entry, text: said }: { entry: ToolEntry; text: string }) {
  const kind = kindOf(entry.name);
  if ((kind === "agent" || kind === "web") && !entry.failed) return <Markdown text={said} />;
  return <Terminal text={said} failed={entry.failed ?? false} />;
}

/** The results of a web search. */
function Links({ found }: { found: Found[] }) {
  return (
    <ol className={styles.links}>
      {found.map((one) => (
        <li key={one.url}>
          <a href={one.url} target="_blank" rel="noopener noreferrer nofollow" title={one.url}>
            {one.title}
          </a>{" "}
          <span className="muted">{new URL(one.url).host}</span>
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
        {content.description && <AgentDescription text={content.description} />}
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

export interface Todo {
  text: string;
  status: string;
}

/** The entries of a `TodoWrite` call. */
function todosOf(raw: unknown): Todo[] {
  return (Array.isArray(raw) ? raw : [])
    .filter(isObject)
    .map((todo) => ({ text: text(todo.content), status: text(todo.status) }));
}

/** A to-do list. */
export function Todos({ todos }: { todos: readonly Todo[] }) {
  return (
    <ul className={styles.todos}>
      {todos.map((todo, index) => (
        <li key={index} data-status={todo.status}>
          <span aria-hidden="true">{lookup(MARKS, todo.status) ?? "○"}</span>{" "}
          <Marked text={todo.text} />
          <span className="visually-hidden">, {todo.status.replace("_", " ")}</span>
        </li>
      ))}
    </ul>
  );
}
