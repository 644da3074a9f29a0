import { Check, Copy, Link2, Paperclip } from "lucide-react";
import { memo, useContext, useState } from "react";
import { AskCard } from "../asks/AskCard";
import { Markdown } from "../markdown/Markdown";
import { PromptActions } from "../rewind/PromptActions";
import { useLiveText } from "../state/liveText";
import { lookup } from "../state/lookup";
import { store } from "../state/store";
import type {
  AskEntry,
  Entry,
  NoteEntry,
  PromptEntry,
  TextEntry,
  ThinkingEntry,
  TurnEntry,
} from "../state/story";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorBoundary, RenderError } from "../ui/ErrorBoundary";
import { clock, cost, duration, moment, tokens } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { Picture } from "../ui/Picture";
import { useCopy } from "../ui/useCopy";
import { useNow } from "../ui/useNow";
import { Clamped } from "./Clamped";
import styles from "./entry.module.css";
import { BudgetButton } from "./head/Budget";
import { OpenSession } from "./relativePath";
import { eventLink } from "./storyTarget";
import { ToolRow } from "./ToolRow";

interface RowProps {
  entry: Entry;
  threads: ReadonlyMap<string, readonly Entry[]>;
  /** The question about this call. */
  ask?: AskEntry | undefined;
  /** A person looks for something in it. */
  found?: boolean | undefined;
}

/** One entry of a story; one that fails to render takes no other with it. */
export const EntryRow = memo(function EntryRow(props: RowProps) {
  return (
    <ErrorBoundary what={text.parts.entry} raw={props.entry}>
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
      return <Answer entry={entry} />;
    case "thinking":
      return <Thinking entry={entry} />;
    case "tool":
      return <ToolRow entry={entry} threads={props.threads} ask={props.ask} found={props.found} />;
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
      return <RenderError what={text.parts.event} raw={entry.raw} error={entry.error} />;
  }
}

/** An answer of the model, or the output of a slash command. */
function Answer({ entry }: { entry: TextEntry }) {
  if (entry.command !== undefined) {
    return (
      <section className={styles.output}>
        <p className={styles.label}>{text.story.outputOf(entry.command)}</p>
        <Clamped lines={20}>
          <Said entry={entry} />
        </Clamped>
      </section>
    );
  }
  return (
    <div className={styles.answer}>
      <Said entry={entry} />
      {entry.live === undefined && <Actions entry={entry} />}
    </div>
  );
}

/** What can be done with a message. */
function Actions({ entry }: { entry: TextEntry }) {
  const session = useContext(OpenSession);
  const [copied, copy] = useCopy();
  const [linked, link] = useCopy();
  return (
    <div className={styles.actions}>
      <button
        type="button"
        className={`${css.button.ghost} ${css.button.small}`}
        title={text.story.copyAnswer}
        aria-label={text.story.copyAnswer}
        onClick={() => copy(entry.text)}
      >
        <Icon of={copied ? Check : Copy} size={14} />
      </button>
      {session && (
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          title={text.story.copyLink}
          aria-label={text.story.copyLink}
          onClick={() => link(eventLink(session, entry.seq))}
        >
          <Icon of={linked ? Check : Link2} size={14} />
        </button>
      )}
      <span className={css.texts.visuallyHidden} role="status">
        {(copied || linked) && text.story.copied}
      </span>
    </div>
  );
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
      <summary>{entry.live ? text.story.thinkingNow : text.story.thinking}</summary>
      {open && <Said entry={entry} />}
    </details>
  );
}

function Prompt({ entry }: { entry: PromptEntry }) {
  const session = useContext(OpenSession);
  return (
    <article className={styles.prompt} data-stage={entry.stage}>
      <header>
        <span>{entry.by || text.story.you}</span>
        <time dateTime={new Date(entry.at).toISOString()} title={moment(entry.at)}>
          {clock(entry.at)}
        </time>
        {entry.stage === "queued" && <span className={css.badge.stage}>{text.story.queued}</span>}
        {entry.stage === "cancelled" && (
          <span className={css.badge.stage}>{text.story.cancelled}</span>
        )}
        {session && entry.stage !== "queued" && entry.stage !== "cancelled" && (
          <PromptActions session={session} prompt={entry.id} words={entry.text} seq={entry.seq} />
        )}
      </header>
      <p>{entry.text}</p>
      {entry.files?.map((name, index) => (
        <p key={index} className={styles.file}>
          <Icon of={Paperclip} size={14} /> <Marked text={name} />
        </p>
      ))}
      {entry.images.map((image) => (
        <Picture
          key={image.slice(-64)}
          className={css.card.picture}
          src={image}
          alt={text.story.promptPicture}
        />
      ))}
    </article>
  );
}

function Note({ entry }: { entry: NoteEntry }) {
  const said = <Marked text={entry.text} />;
  return (
    <div
      className={`${css.note.note} ${styles.note}`}
      data-tone={entry.tone}
      data-code={entry.code}
    >
      {entry.code === "turn.cause" && <b>{text.story.causeLabel} </b>}
      {LONG_NOTES.has(entry.code) ? <Clamped lines={3}>{said}</Clamped> : said}
      {entry.until !== undefined && <Countdown until={entry.until} words={entry.next ?? ""} />}
      {entry.code === "budget.reached" && <BudgetButton />}
    </div>
  );
}

/** Notes whose text comes from the CLI, and may be long. */
const LONG_NOTES: ReadonlySet<string> = new Set(["cli.text", "cli.notice", "prompt.peer"]);

/** How long it still takes until something happens; nothing once it has. */
export function Countdown({ until, words }: { until: number; words: string }) {
  const left = until - useNow(1);
  if (left <= 0) return null;
  return (
    <span role="timer">
      {" "}
      {text.story.countdown(words, duration(Math.ceil(left / 1000) * 1000))}
    </span>
  );
}

function Turn({ entry }: { entry: TurnEntry }) {
  const ran = entry.duration === undefined ? undefined : entry.duration - entry.waited;
  const parts = [
    entry.failed
      ? (lookup(text.story.outcomes, entry.outcome) ?? entry.outcome.replaceAll("_", " "))
      : text.story.done,
    ran !== undefined && duration(Math.max(0, ran)),
    entry.waited >= 1000 && text.story.waitedForYou(duration(entry.waited)),
    entry.cost > 0 && cost(entry.cost),
    entry.tokens > 0 && text.story.tokens(tokens(entry.tokens)),
  ];
  return (
    <footer className={styles.turn} data-failed={entry.failed || undefined}>
      <span>{parts.filter(Boolean).join(" · ")}</span>
      {entry.failed && entry.text && <p>{entry.text}</p>}
    </footer>
  );
}
