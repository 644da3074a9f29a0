import {
  FormInput,
  ListTodo,
  type LucideIcon,
  MessageCircleQuestion,
  ShieldQuestion,
} from "lucide-react";
import {
  memo,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useSyncExternalStore,
} from "react";
import type { Answer, AskOpened } from "../api/types";
import { useRelativePath } from "../session/relativePath";
import { isObject, text } from "../state/contentBlocks";
import { lookup } from "../state/lookup";
import { store, useAppState } from "../state/store";
import type { Settled } from "../state/story";
import { kindOf } from "../state/tools";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { ago, duration, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { undoSeconds } from "../ui/preferences";
import { useNow } from "../ui/useNow";
import { AskReasons } from "./AskReasons";
import styles from "./asks.module.css";
import { ElicitationForm } from "./ElicitationForm";
import { isHeld } from "./hold";
import { guard } from "./keyGuard";
import { PermissionForm } from "./PermissionForm";
import { PlanForm } from "./PlanForm";
import { QuestionsForm } from "./QuestionsForm";
import { askTitle } from "./request";

export interface FormProps {
  opened: AskOpened;
  busy: boolean;
  answer: (answer: Answer) => void;
}

const words = catalogue.asks;

const ICONS: Record<AskOpened["ask_kind"], LucideIcon> = {
  tool: ShieldQuestion,
  plan: ListTodo,
  questions: MessageCircleQuestion,
  elicitation: FormInput,
};

function headingOf(opened: AskOpened): string {
  const wants = opened.ask_kind === "tool" ? lookup(words.wants, kindOf(opened.tool)) : undefined;
  return wants ?? lookup(words.headings, opened.ask_kind) ?? words.headings.questions;
}

/** A question to a person: open, being sent, or settled. */
export const AskCard = memo(function AskCard(props: {
  opened: AskOpened;
  at: number;
  settled?: Settled | undefined;
}) {
  const { opened } = props;
  const sending = useAppState((state) => state.sending.get(opened.ask));
  const open = useAppState((state) => state.asks.has(opened.ask));
  const outcome = useAppState((state) => state.settled.get(opened.ask));
  const mayAnswer = useAppState((state) => state.me?.rights.includes("steer") ?? true);
  const now = useNow();
  const settled: Settled | undefined =
    props.settled ?? (outcome !== undefined && !open ? outcome : undefined);
  if (settled && !mayAnswerLate(settled)) {
    return (
      <Card opened={opened} state="settled">
        <p className={styles.outcome} data-outcome="">
          {settledText(settled)}
        </p>
        <GivenAnswer opened={opened} answer={settled.answer} />
      </Card>
    );
  }
  const form: FormProps = {
    opened,
    busy: (sending !== undefined && sending.state !== "failed") || !mayAnswer,
    answer: (answer) =>
      store.asks.hold(opened.ask, answer, isHeld(answer, guard.byKey) ? undoSeconds() : 0),
  };
  return (
    <Card opened={opened} state={sending?.state ?? "open"}>
      <p className={styles.heading}>
        <Icon of={lookup(ICONS, opened.ask_kind) ?? MessageCircleQuestion} />
        <span>
          {opened.agent ? words.subagent(withMarks(opened.agent)) : words.agent} {headingOf(opened)}
        </span>
        <time dateTime={new Date(props.at).toISOString()} title={moment(props.at)}>
          {ago(props.at, now)}
        </time>
      </p>
      {settled && <p className={css.texts.hint}>{words.endedBefore}</p>}
      <Form {...form} />
      <AskReasons opened={opened} at={props.at} />
      <p className={styles.sending} role="status">
        {sending?.state === "sending" && words.sending}
        {!mayAnswer && words.readOnly}
      </p>
      {sending?.state === "failed" && (
        <p className={css.texts.error} role="alert">
          {sending.error}
        </p>
      )}
      {(sending?.state === "held" || sending?.state === "offline") && (
        <UndoBar ask={opened.ask} until={sending.state === "held" ? sending.until : undefined} />
      )}
    </Card>
  );
});

/** An answer that the hub does not have yet can be taken back. */
function UndoBar({ ask, until }: { ask: string; until: number | undefined }) {
  const now = useNow(1);
  const left = until === undefined ? 0 : Math.max(1, Math.ceil((until - now) / 1000));
  return (
    <div className={styles.undo}>
      <span role="status">{until === undefined ? words.sentLater : words.sentSoon}</span>
      {until !== undefined && <span aria-hidden="true">{words.keys.seconds(left)}</span>}
      <button
        type="button"
        onClick={(event) => {
          // The button disappears: a person who uses keys stays at the card.
          event.currentTarget.closest<HTMLElement>("[data-ask]")?.focus({ preventScroll: true });
          store.asks.undo(ask);
        }}
      >
        {words.undo}
      </button>
      {until !== undefined && (
        <button type="button" className={css.button.ghost} onClick={() => store.asks.sendHeld(ask)}>
          {words.sendNow}
        </button>
      )}
    </div>
  );
}

function Card(props: { opened: AskOpened; state: string; children: ReactNode }) {
  const place = useRef<HTMLElement>(null);
  const before = useRef(props.state);
  const { opened } = props;
  const title = useRelativePath(askTitle(opened));
  const ready = useSyncExternalStore(guard.subscribe, () => guard.ready(place.current));
  const hint = useSyncExternalStore(guard.subscribe, () => guard.hint(place.current));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the question and its state
  useLayoutEffect(() => {
    const card = place.current;
    if (!card) return;
    // The pressed button disappears: a person who uses keys stays at the card.
    const inside = document.activeElement !== card && card.contains(document.activeElement);
    if (props.state !== "open" && inside) card.focus({ preventScroll: true });
    // Who takes an answer back is still in the card.
    const undone = props.state === "open" && before.current === "held";
    before.current = props.state;
    if (undone && document.activeElement === card) guard.back(card);
    else guard.changed(card);
  }, [opened, props.state]);
  useEffect(() => {
    const card = place.current;
    return () => {
      if (card) guard.leave(card);
    };
  }, []);
  return (
    <article
      ref={place}
      className={styles.card}
      data-kind={opened.ask_kind}
      data-state={props.state}
      data-ask={opened.ask}
      data-keys={ready ? "ready" : undefined}
      aria-label={words.question(withMarks(title))}
      tabIndex={-1}
    >
      {props.state === "settled" && (
        <h2 title={withMarks(title, opened.ask_kind === "tool")}>
          <Marked text={title} code={opened.ask_kind === "tool"} />
        </h2>
      )}
      {props.children}
      {props.state === "open" && (
        <p className={styles.pressAgain} role="status">
          {hint}
        </p>
      )}
    </article>
  );
}

function Form(props: FormProps) {
  switch (props.opened.ask_kind) {
    case "plan":
      return <PlanForm {...props} />;
    case "questions":
      return <QuestionsForm {...props} />;
    case "elicitation":
      return <ElicitationForm {...props} />;
    default:
      return <PermissionForm {...props} />;
  }
}

/** A question whose agent is gone can still be answered: the session is resumed with the answer. */
function mayAnswerLate(settled: Settled): boolean {
  return settled.how === "run_ended";
}

function settledText({ how, why, by, allowed, waited, answer }: Settled): string {
  if (by === undefined) return why ? words.sentence(why) : words.settled[how];
  const given = isObject(answer) ? answer : {};
  const edited = given.input !== undefined && given.input !== null;
  const word =
    lookup(words.choices, text(given.choice) || text(given.action)) ??
    lookup(words.answers, text(given.answer)) ??
    (allowed ? (lookup(words.scopes, text(given.scope)) ?? words.allowed) : words.denied);
  const after = waited !== undefined && waited >= 1000 ? duration(waited) : "";
  return words.settledBy(word, edited, by, after);
}

/** What was answered: the message to the agent, or the choices. */
function GivenAnswer({ opened, answer }: { opened: AskOpened; answer: unknown }) {
  if (!isObject(answer)) return null;
  const said = text(answer.message) || text(answer.feedback);
  if (said) return <blockquote className={styles.givenAnswer}>{said}</blockquote>;
  if (Array.isArray(answer.rules) && answer.rules.length) {
    return (
      <p className={styles.givenAnswer}>
        {words.granted}{" "}
        {answer.rules.map((rule) => (
          <code key={text(rule)}>
            <Marked text={text(rule)} code />
          </code>
        ))}
      </p>
    );
  }
  const chosen = opened.ask_kind === "elicitation" ? answer.content : answer.answers;
  const answers = isObject(chosen) ? Object.entries(chosen) : [];
  if (!answers.length) return null;
  return (
    <dl className={styles.givenAnswer}>
      {answers.map(([question, given]) => (
        <div key={question}>
          <dt>
            <Marked text={question} />
          </dt>
          <dd>{Array.isArray(given) ? given.map(String).join(", ") : String(given)}</dd>
        </div>
      ))}
    </dl>
  );
}
