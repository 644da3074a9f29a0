import { memo, useState } from "react";
import { AskCard } from "../asks/AskCard";
import { Markdown } from "../markdown/Markdown";
import { useLiveText } from "../state/liveText";
import { lookup } from "../state/lookup";
import { store } from "../state/store";
import type {
  Entry,
  NoteEntry,
  PromptEntry,
  TextEntry,
  ThinkingEntry,
  TurnEntry,
} from "../state/story";
import { ErrorBoundary, RenderError } from "../ui/ErrorBoundary";
import { clock, cost, duration, moment, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { useNow } from "../ui/useNow";
import styles from "./entry.module.css";
import { ToolRow } from "./ToolRow";

interface RowProps {
  entry: Entry;
  threads: ReadonlyMap<string, readonly Entry[]>;
}

/** One entry of a story; one that fails to render takes no other with it. */
export const EntryRow = memo(function EntryRow(props: RowProps) {
  return (
    <ErrorBoundary what="entry" raw={props.entry}>
      <Row {...props} />
    </ErrorBoundary>
  );
});

function Row(props: RowProps) {
  const { entry } = props;
  switch (entry.kind) {
    case "prompt":
      return <Prompt entry={entry} />;
    case "text":
      return <Said entry={entry} />;
    case "thinking":
      return <Thinking entry={entry} />;
    case "tool":
      return <ToolRow entry={entry} threads={props.threads} />;
    case "note":
      return <Note entry={entry} />;
    case "mark":
      return (
        <p className={styles.mark} title={moment(entry.at)}>
          <span>
            <Marked text={entry.text} />
          </span>
        </p>
      );
    case "turn":
      return <Turn entry={entry} />;
    case "ask":
      return <AskCard opened={entry.opened} settled={entry.settled} at={entry.at} />;
    case "failed":
      return <RenderError what="event" raw={entry.raw} error={entry.error} />;
  }
}

/** Text, complete or still being generated: only this component is rendered again for each delta. */
function Said({ entry }: { entry: TextEntry | ThinkingEntry }) {
  const live = useLiveText(store.liveText, entry.live, entry.key);
  return <Markdown text={live ?? entry.text} live={entry.live !== undefined} />;
}

/** Folded, even while it is generated: a row that folds by itself would move the text below. */
function Thinking({ entry }: { entry: ThinkingEntry }) {
  const [open, setOpen] = useState(false);
  return (
    <details
      className={styles.thinking}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{entry.live ? "Thinking …" : "Thinking"}</summary>
      {open && <Said entry={entry} />}
    </details>
  );
}

function Prompt({ entry }: { entry: PromptEntry }) {
  return (
    <article className={styles.prompt} data-stage={entry.stage}>
      <header>
        <span>{entry.by || "you"}</span>
        <time dateTime={new Date(entry.at).toISOString()} title={moment(entry.at)}>
          {clock(entry.at)}
        </time>
        {entry.stage === "queued" && <span className="stage">queued</span>}
        {entry.stage === "cancelled" && <span className="stage">cancelled</span>}
      </header>
      <p>{entry.text}</p>
      {entry.images.map((image) => (
        <img key={image.slice(-64)} className="picture" src={image} alt="attached to the prompt" />
      ))}
    </article>
  );
}

function Note({ entry }: { entry: NoteEntry }) {
  return (
    <p className="note" data-tone={entry.tone}>
      <Marked text={entry.text} />
      {entry.until !== undefined && <Countdown until={entry.until} words={entry.next ?? ""} />}
    </p>
  );
}

/** How long it still takes until something happens; nothing once it has. */
export function Countdown({ until, words }: { until: number; words: string }) {
  const left = until - useNow(1);
  if (left <= 0) return null;
  return (
    <span className="countdown" role="timer">
      {" "}
      {words} in {duration(Math.ceil(left / 1000) * 1000)}.
    </span>
  );
}

/** How a turn failed: the CLI's codes, in words. */
const OUTCOMES: Record<string, string> = {
  error_during_execution: "interrupted or failed",
  error_max_turns: "turn limit reached",
  error_max_budget_usd: "budget reached",
  error_max_structured_output_retries: "no valid structured output",
};

function Turn({ entry }: { entry: TurnEntry }) {
  const parts = [
    entry.failed ? (lookup(OUTCOMES, entry.outcome) ?? entry.outcome.replaceAll("_", " ")) : "done",
    entry.duration !== undefined && duration(entry.duration),
    entry.cost > 0 && cost(entry.cost),
    entry.tokens > 0 && `${tokens(entry.tokens)} tokens`,
  ];
  return (
    <footer className={styles.turn} data-failed={entry.failed || undefined}>
      <span>{parts.filter(Boolean).join(" · ")}</span>
      {entry.failed && entry.text && <p>{entry.text}</p>}
    </footer>
  );
}
