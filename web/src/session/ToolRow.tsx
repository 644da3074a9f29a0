import { memo, useState } from "react";
import { AskCard } from "../asks/AskCard";
import { AgentDescription, Members } from "../asks/CallContent";
import { contentOf } from "../asks/callContent";
import { Markdown } from "../markdown/Markdown";
import { imagesOf, isObject, plainText, text as textIn } from "../state/contentBlocks";
import { lastLines, longOutput } from "../state/longOutput";
import { lookup } from "../state/lookup";
import type { AskEntry, Entry, Task, ToolEntry } from "../state/story";
import { runTime } from "../state/storyRows";
import {
  appliedEdits,
  type Found,
  kindOf,
  readResult,
  searchResults,
  titleOf,
  toolName,
} from "../state/tools";
import { text } from "../text";
import { css } from "../ui/css";
import { duration, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { Picture } from "../ui/Picture";
import { Clamped } from "./Clamped";
import { CodeBlock } from "./CodeBlock";
import { Diff } from "./Diff";
import { EntryRow } from "./EntryRow";
import { useRelativePath } from "./relativePath";
import { SandboxRefusals } from "./SandboxRefusals";
import { StoredOutput } from "./StoredOutput";
import { Terminal } from "./Terminal";
import styles from "./tool.module.css";

const OPEN_BY_ITSELF = new Set(["edit", "todo"]);
/** Lines of output that a closed row shows: of a command, and of a failure. */
const TAIL = 3;
const FAILED_TAIL = 8;

interface ToolProps {
  entry: ToolEntry;
  threads: ReadonlyMap<string, readonly Entry[]>;
  /** The question about this call. */
  ask?: AskEntry | undefined;
  /** A person looks for something in it. */
  found?: boolean | undefined;
}

/** A tool call in one line with its verdict, and its result below. */
export const ToolRow = memo(function ToolRow(props: ToolProps) {
  const { entry, ask } = props;
  const kind = kindOf(entry.name);
  const thread = props.threads.get(entry.id);
  const [chosen, setChosen] = useState<boolean>();
  const waits = ask !== undefined && (!ask.settled || ask.settled.how === "run_ended");
  const open = chosen ?? ((props.found || OPEN_BY_ITSELF.has(kind)) && !waits);
  const title = useRelativePath(titleOf(entry.name, entry.input));
  const state = stateOf(entry, waits);
  return (
    <div className={styles.row} data-kind={kind} data-state={state}>
      {!waits && (
        <button
          type="button"
          className={styles.head}
          aria-expanded={open}
          onClick={() => setChosen(!open)}
        >
          <span className={styles.kind}>
            <Marked text={toolName(entry.name)} code />
          </span>
          <span className={styles.title} title={withMarks(title, true)}>
            {title !== entry.name && <Marked text={title} code />}
          </span>
          <Verdict entry={entry} ask={ask} />
          <span className={styles.when}>
            {SHOWN.has(state) && <span className={styles.failed}>{text.story.states[state]}</span>}{" "}
            {whenOf(entry, ask)}
            {!SHOWN.has(state) && (
              <span className={css.texts.visuallyHidden}>, {text.story.states[state]}</span>
            )}
          </span>
        </button>
      )}
      {ask && (
        <div className={waits ? undefined : styles.answered}>
          <AskCard opened={ask.opened} settled={ask.settled} at={ask.at} />
        </div>
      )}
      {entry.refusals && <SandboxRefusals refusals={entry.refusals} />}
      {entry.task && <TaskLine task={entry.task} />}
      {!open && !waits && <Tail entry={entry} />}
      {open && (
        <div className={styles.body}>
          <Body entry={entry} />
          {entry.verdict && entry.verdict.reasons.length > 0 && (
            <p className={css.texts.muted}>
              {text.story.verdictBy(verdictWord(entry.verdict.verdict), entry.verdict.by)}:{" "}
              <Marked text={entry.verdict.reasons.join("; ")} />
            </p>
          )}
        </div>
      )}
      {thread && thread.length > 0 && <Thread entries={thread} threads={props.threads} />}
    </div>
  );
});

const verdictWord = (code: string): string => lookup(text.story.verdicts, code) ?? code;

/** Who decided about the call: the person who answered, or the policy if it did not allow it. */
function Verdict({ entry, ask }: { entry: ToolEntry; ask: AskEntry | undefined }) {
  const settled = ask?.settled;
  if (settled?.by !== undefined) {
    const word = verdictWord(settled.allowed ? "allow" : "deny");
    const waited = settled.waited ?? 0;
    const said =
      waited >= 1000
        ? text.story.verdictAfter(word, settled.by, duration(waited))
        : text.story.verdictBy(word, settled.by);
    return (
      <span className={styles.verdict} data-allowed={settled.allowed || undefined}>
        {said}
      </span>
    );
  }
  const { verdict } = entry;
  if (!verdict || verdict.verdict === "allow") return null;
  return (
    <span className={styles.verdict}>
      {text.story.verdictBy(verdictWord(verdict.verdict), verdict.by)}
    </span>
  );
}

export const FINISHED = new Set(["completed", "failed", "stopped", "killed"]);

type State = keyof typeof text.story.states;
/** States that are shown in words. */
const SHOWN: ReadonlySet<State> = new Set<State>(["failed", "interrupted"]);

function stateOf(entry: ToolEntry, waits: boolean): State {
  if (entry.interrupted) return "interrupted";
  if (waits) return "waiting";
  if (entry.task && !FINISHED.has(entry.task.status)) return "running";
  if (entry.ended === undefined) return "running";
  return entry.failed || entry.task?.status === "failed" ? "failed" : "done";
}

function whenOf(entry: ToolEntry, ask: AskEntry | undefined): string {
  if (entry.interrupted) return "";
  if (entry.task && entry.task.at > (entry.ended ?? 0)) return "";
  const spent = runTime(entry, ask);
  return spent === undefined ? (entry.progress ?? "…") : duration(spent);
}

/** What the CLI says in place of an output that is empty. */
const NO_OUTPUT = /^\((?:Bash completed with )?no (?:output|content)\)$/i;

/** The last lines of what a command has printed, or of why a call failed. */
function Tail({ entry }: { entry: ToolEntry }) {
  const isCommand = kindOf(entry.name) === "command";
  if (entry.ended === undefined || (!isCommand && !entry.failed)) return null;
  const result = plainText(entry.result);
  const said = longOutput(result, entry.structured)?.preview ?? result;
  const { lines, count } = lastLines(said, entry.failed ? FAILED_TAIL : TAIL);
  if (!lines.length || NO_OUTPUT.test(said)) return null;
  return (
    <div className={styles.tail} data-failed={entry.failed || undefined}>
      {count > lines.length && (
        <span className={css.texts.visuallyHidden}>{text.story.outputTail(lines.length)}: </span>
      )}
      <Terminal text={lines.map((line) => line.slice(0, 400)).join("\n")} bare />
    </div>
  );
}

/** The state of a task, its duration and its progress. */
export function TaskLine({ task }: { task: Task }) {
  const over = FINISHED.has(task.status);
  const parts = [
    over ? task.status : text.story.inBackground,
    duration(task.at - task.began),
    task.steps !== undefined && text.story.calls(task.steps),
    task.tokens !== undefined && text.story.tokens(tokens(task.tokens)),
  ];
  return (
    <div className={styles.taskLine} data-over={over || undefined}>
      <Clamped lines={2}>
        <Marked text={[...parts, withoutMarkup(task.detail)].filter(Boolean).join(" · ")} />
      </Clamped>
    </div>
  );
}

/** The marks of Markdown say nothing in one line. */
function withoutMarkup(said: string): string {
  return said
    .replace(/^#{1,6}\s+/gm, "")
    .replace(/\*\*([^*\n]+)\*\*/g, "$1")
    .replace(/`([^`\n]+)`/g, "$1");
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
      <summary>{text.story.subagent(props.entries.length)}</summary>
      {open &&
        props.entries.map((one) =>
          one.kind === "text" ? (
            <Clamped key={one.key}>
              <EntryRow entry={one} threads={props.threads} />
            </Clamped>
          ) : (
            <EntryRow key={one.key} entry={one} threads={props.threads} />
          ),
        )}
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
      {read && <CodeBlock code={read.content} language={textIn(entry.input.file_path)} />}
      {found.length > 0 && <Links found={found} />}
      {result && !read && !found.length && (!edits.length || entry.failed) && (
        <Result entry={entry} text={result} />
      )}
      {images.map((image) => (
        <Picture
          key={image.slice(-64)}
          className={css.card.picture}
          src={image}
          alt={text.story.resultPicture}
        />
      ))}
    </>
  );
}

function Result({ entry, text: said }: { entry: ToolEntry; text: string }) {
  const kind = kindOf(entry.name);
  const long = longOutput(said, entry.structured);
  if (long) {
    const { id, resultSeq } = entry;
    return <StoredOutput output={long} failed={entry.failed ?? false} call={id} seq={resultSeq} />;
  }
  if ((kind === "agent" || kind === "web") && !entry.failed) {
    return (
      <Clamped lines={16}>
        <Markdown text={said} />
      </Clamped>
    );
  }
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
          <span className={css.texts.muted}>{new URL(one.url).host}</span>
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
        <CodeBlock code={textIn(entry.input.command)} language="bash" />
        <Members members={content.members} lines={Number.POSITIVE_INFINITY} />
      </>
    );
  }
  if (kindOf(entry.name) === "agent" && textIn(entry.input.prompt)) {
    return (
      <Clamped>
        <Markdown text={textIn(entry.input.prompt)} careful />
      </Clamped>
    );
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
    .map((todo) => ({ text: textIn(todo.content), status: textIn(todo.status) }));
}

/** A to-do list. */
export function Todos({ todos }: { todos: readonly Todo[] }) {
  return (
    <ul className={styles.todos}>
      {todos.map((todo, index) => (
        <li key={index} data-status={todo.status}>
          <span aria-hidden="true">{lookup(MARKS, todo.status) ?? "○"}</span>{" "}
          <Marked text={todo.text} />
          <span className={css.texts.visuallyHidden}>, {text.story.todoStatus(todo.status)}</span>
        </li>
      ))}
    </ul>
  );
}
