import {
  memo,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useSyncExternalStore,
} from "react";
import type { Answer, AskOpened } from "../api/types";
import { useShort } from "../session/folder";
import { LEFT } from "../state/entries";
import { isObject, text } from "../state/lines";
import { lookup } from "../state/lookup";
import { store, useDeck } from "../state/store";
import type { Settled } from "../state/story";
import { ago, duration, moment } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { useNow } from "../ui/useNow";
import { ElicitationForm } from "./ElicitationForm";
import { guard } from "./keyGuard";
import { PermissionForm } from "./PermissionForm";
import { PlanForm } from "./PlanForm";
import { QuestionsForm } from "./QuestionsForm";
import { askTitle } from "./request";
import { Why } from "./Why";

export interface FormProps {
  opened: AskOpened;
  busy: boolean;
  /** In a list there is little room: only what is needed to answer. */
  compact: boolean;
  answer: (answer: Answer) => void;
}

const WORDS: Record<AskOpened["ask_kind"], string> = {
  tool: "wants to run",
  plan: "has a plan",
  questions: "asks",
  elicitation: "wants to know",
};

/** A question to a person: open, on its way, or settled. */
export const AskCard = memo(function AskCard(props: {
  opened: AskOpened;
  at: number;
  settled?: Settled | undefined;
  compact?: boolean;
}) {
  const { opened } = props;
  const sending = useDeck((deck) => deck.sending.get(opened.ask));
  const open = useDeck((deck) => deck.asks.has(opened.ask));
  const told = useDeck((deck) => deck.settled.get(opened.ask));
  const mayAnswer = useDeck((deck) => deck.me?.rights.includes("steer") ?? true);
  const now = useNow();
  const settled: Settled | undefined =
    props.settled ?? (told !== undefined && !open ? { how: told } : undefined);
  if (settled && !isStalePlan(opened, settled)) {
    return (
      <Card opened={opened} state="settled">
        <p className="settled">{settledWords(settled)}</p>
        <Given opened={opened} answer={settled.answer} />
      </Card>
    );
  }
  const form: FormProps = {
    opened,
    busy: sending?.state === "sending" || !mayAnswer,
    compact: props.compact ?? false,
    answer: (answer) => void store.answer(opened.ask, answer),
  };
  return (
    <Card opened={opened} state={sending?.state ?? "open"}>
      <p className="who">
        <span>
          {opened.agent ? `The subagent ${withMarks(opened.agent)}` : "The agent"}{" "}
          {lookup(WORDS, opened.ask_kind) ?? "asks"}
        </span>
        <time dateTime={new Date(props.at).toISOString()} title={moment(props.at)}>
          {ago(props.at, now)}
        </time>
      </p>
      {settled && (
        <p className="hint">
          {settledWords(settled)} It can still be answered: the session goes on with it.
        </p>
      )}
      <Form {...form} />
      {!form.compact && <Why opened={opened} at={props.at} />}
      <p className="sent" role="status">
        {sending?.state === "sending" && "Sending …"}
        {sending?.state === "failed" && <span className="error">{sending.error}</span>}
        {!mayAnswer && "You may look, and not answer."}
      </p>
    </Card>
  );
});

function Card(props: { opened: AskOpened; state: string; children: ReactNode }) {
  const place = useRef<HTMLElement>(null);
  const { opened } = props;
  const title = useShort(askTitle(opened));
  const ready = useSyncExternalStore(guard.subscribe, () => guard.ready(place.current));
  const hint = useSyncExternalStore(guard.subscribe, () => guard.hint(place.current));
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is asked and how it stands
  useLayoutEffect(() => {
    const card = place.current;
    if (!card) return;
    // The button that was pressed goes away: whoever uses keys stays at the card.
    const inside = document.activeElement !== card && card.contains(document.activeElement);
    if (props.state !== "open" && inside) card.focus({ preventScroll: true });
    guard.changed(card);
  }, [opened, props.state]);
  useEffect(() => {
    const card = place.current;
    return () => {
      if (card) guard.leave(card);
    };
  }, []);
  return (
    <section
      ref={place}
      className="ask"
      data-kind={opened.ask_kind}
      data-state={props.state}
      data-ask={opened.ask}
      data-keys={ready ? "ready" : undefined}
      aria-label={`Question: ${withMarks(title)}`}
      tabIndex={-1}
    >
      {props.state === "settled" && (
        <h3>
          <Marked text={title} code={opened.ask_kind === "tool"} />
        </h3>
      )}
      {props.children}
      {props.state === "open" && (
        <p className="again" role="status">
          {hint}
        </p>
      )}
    </section>
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

/** A plan whose agent is gone can still be answered: the session is resumed with the answer. */
function isStalePlan(opened: AskOpened, settled: Settled): boolean {
  return opened.ask_kind !== "tool" && settled.how === LEFT;
}

function settledWords({ how, by, allowed, waited, answer }: Settled): string {
  if (by === undefined) return `${how[0]?.toUpperCase() ?? ""}${how.slice(1)}.`;
  const given = isObject(answer) ? answer : {};
  const scope = lookup(SCOPES, text(given.scope)) ?? "";
  const edited = given.input !== undefined && given.input !== null ? ", changed," : "";
  const word =
    lookup(WAYS, text(given.choice) || text(given.action)) ?? lookup(ANSWERS, text(given.answer));
  const done = word ?? (allowed ? "Allowed" : "Denied");
  const after = waited !== undefined && waited >= 1000 ? ` after ${duration(waited)}` : "";
  return `${done}${edited}${scope} by ${by}${after}.`;
}

const SCOPES: Record<string, string> = { session: " for the session", always: " for always" };
const ANSWERS: Record<string, string> = { questions: "Answered", skip: "Skipped" };
const WAYS: Record<string, string> = {
  auto: "Approved, edits accepted,",
  manual: "Approved, every call asked about,",
  fresh: "Approved for a new conversation",
  revise: "Sent back",
  reject: "Rejected",
  accept: "Filled in",
  decline: "Declined",
  cancel: "Put away",
};

/** What was answered: the words for the agent, or the choices. */
function Given({ opened, answer }: { opened: AskOpened; answer: unknown }) {
  if (!isObject(answer)) return null;
  const words = text(answer.message) || text(answer.feedback);
  if (words) return <blockquote className="given">{words}</blockquote>;
  const chosen = opened.ask_kind === "elicitation" ? answer.content : answer.answers;
  const answers = isObject(chosen) ? Object.entries(chosen) : [];
  if (!answers.length) return null;
  return (
    <dl className="given">
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
