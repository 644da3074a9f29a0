import { memo, type ReactNode, useEffect, useRef } from "react";
import type { Answer, AskOpened } from "../api/types";
import { store, useDeck } from "../state/store";
import type { AskEntry } from "../state/story";
import { ago, moment } from "../ui/format";
import { useNow } from "../ui/useNow";
import { ElicitationForm } from "./ElicitationForm";
import { PermissionForm } from "./PermissionForm";
import { PlanForm } from "./PlanForm";
import { QuestionsForm } from "./QuestionsForm";

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
  settled?: AskEntry["settled"] | undefined;
  compact?: boolean;
}) {
  const { opened } = props;
  const sending = useDeck((deck) => deck.sending.get(opened.ask));
  const open = useDeck((deck) => deck.asks.has(opened.ask));
  const told = useDeck((deck) => deck.settled.get(opened.ask));
  const mayAnswer = useDeck((deck) => deck.me?.rights.includes("steer") ?? true);
  const now = useNow();
  const settled = props.settled ?? (told !== undefined && !open ? { how: told } : undefined);
  if (settled && !isStalePlan(opened, settled)) {
    return (
      <Card opened={opened} state="settled">
        <p className="settled">{settledWords(settled)}</p>
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
        {opened.agent ? `The subagent ${opened.agent}` : "The agent"} {WORDS[opened.ask_kind]}
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
  // Keys go to the card that a person is in; a card that opens takes no focus from anybody.
  useEffect(() => {
    const card = place.current;
    if (!card || props.state !== "open") return;
    const pressed = (event: KeyboardEvent): void => {
      const typing =
        event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      card.querySelector<HTMLButtonElement>(`button[data-key="${event.key}"]:enabled`)?.click();
    };
    card.addEventListener("keydown", pressed);
    return () => card.removeEventListener("keydown", pressed);
  }, [props.state]);
  return (
    <section
      ref={place}
      className="ask"
      data-kind={opened.ask_kind}
      data-state={props.state}
      data-ask={opened.ask}
      aria-label={`Question: ${opened.title}`}
      tabIndex={-1}
    >
      {props.state === "settled" && <h3>{opened.title || opened.tool}</h3>}
      {props.children}
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
function isStalePlan(opened: AskOpened, settled: NonNullable<AskEntry["settled"]>): boolean {
  return opened.ask_kind !== "tool" && settled.how === "the agent has ended";
}

function settledWords(settled: NonNullable<AskEntry["settled"]>): string {
  if (settled.by === undefined)
    return `${settled.how[0]?.toUpperCase() ?? ""}${settled.how.slice(1)}.`;
  return `${settled.allowed ? "Allowed" : "Denied"} by ${settled.by}.`;
}
