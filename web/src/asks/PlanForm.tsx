import { useEffect, useRef, useState } from "react";
import { Markdown } from "../markdown/Markdown";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { takeFocus } from "../ui/focus";
import { withMarks } from "../ui/marks";
import { useEscape } from "../ui/useEscape";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";
import { guard, OPEN_CARD } from "./keyGuard";

const words = catalogue.asks.plan;

interface Comment {
  about: string;
  says: string;
}

/** The parts of a plan that can be commented on: its paragraphs, lists and headings. */
export function partsOf(plan: string): string[] {
  const parts: string[] = [];
  let fence = false;
  let part: string[] = [];
  for (const line of plan.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) fence = !fence;
    if (!fence && line.trim() === "") {
      if (part.length) parts.push(part.join("\n"));
      part = [];
    } else {
      part.push(line);
    }
  }
  if (part.length) parts.push(part.join("\n"));
  return parts;
}

/** The comments as one text for the agent, each with a quote of its part. */
export function feedbackOf(comments: readonly Comment[], more: string): string {
  const quoted = comments.map(({ about, says }) => {
    const place = about.split("\n")[0] ?? "";
    return `> ${place.slice(0, 200)}\n${says}`;
  });
  return [...quoted, more.trim()].filter(Boolean).join("\n\n");
}

/** A plan: approve, send back with comments on its parts, or reject. */
export function PlanForm({ opened, busy, answer }: FormProps) {
  const [comments, setComments] = useState<Record<number, string>>({});
  const [asking, setAsking] = useState<{ part: number }>();
  const field = useRef<HTMLTextAreaElement>(null);
  // Also when its field exists already: a person who presses Comment is about to write.
  useEffect(() => {
    if (asking && document.activeElement !== field.current) takeFocus(field.current);
  }, [asking]);
  useEscape(asking !== undefined, () => {
    const card = field.current?.closest<HTMLElement>(OPEN_CARD);
    if (card) guard.back(card);
    setAsking(undefined);
  });
  const [more, setMore] = useState("");
  const parts = partsOf(opened.plan ?? "");
  const given = Object.entries(comments)
    .filter(([, says]) => says.trim())
    .map(([index, says]) => ({ about: parts[Number(index)] ?? "", says: says.trim() }));
  const feedback = feedbackOf(given, more);
  const choose = (choice: "fresh" | "auto" | "manual" | "revise" | "reject"): void =>
    answer({ answer: "plan", choice, feedback });
  return (
    <>
      {parts.length === 0 && <p className={css.texts.muted}>{words.empty}</p>}
      <div className={styles.plan}>
        {parts.map((part, index) => (
          <div key={index} className={styles.part}>
            <Markdown text={part} careful />
            <button
              type="button"
              className={`${css.button.ghost} ${css.button.small} ${styles.comment}`}
              onClick={() => setAsking({ part: index })}
            >
              {comments[index]?.trim() ? words.oneComment : words.comment}
              <span className={css.texts.visuallyHidden}>
                {" "}
                {words.commentOn(withMarks(part.slice(0, 60)))}
              </span>
            </button>
            {(asking?.part === index || comments[index]?.trim()) && (
              <textarea
                ref={asking?.part === index ? field : undefined}
                aria-label={words.yourComment(index + 1)}
                rows={2}
                value={comments[index] ?? ""}
                // A focused field stays open, even while it is empty.
                onFocus={() => asking?.part !== index && setAsking({ part: index })}
                onChange={(event) => setComments({ ...comments, [index]: event.target.value })}
              />
            )}
          </div>
        ))}
      </div>
      <label className={styles.formPart}>
        {words.feedback}
        <textarea rows={2} value={more} onChange={(event) => setMore(event.target.value)} />
      </label>
      <div className={`${css.layout.buttons} ${styles.buttons}`}>
        <button
          type="button"
          // No approval is the obvious answer: a plan is read first.
          data-key="1"
          data-twice={words.twice.auto}
          title={words.key("1")}
          disabled={busy}
          onClick={() => choose("auto")}
        >
          {words.auto}
        </button>
        <button
          type="button"
          data-key="2"
          data-twice={words.twice.manual}
          title={words.key("2")}
          disabled={busy}
          onClick={() => choose("manual")}
        >
          {words.manual}
        </button>
        <button
          type="button"
          data-key="3"
          data-twice={words.twice.fresh}
          title={words.key("3")}
          disabled={busy}
          onClick={() => choose("fresh")}
        >
          {words.fresh}
        </button>
        <button
          type="button"
          // With comments, the likely answer is to send them.
          className={feedback ? css.button.primary : undefined}
          data-key="4"
          data-twice={words.twice.revise}
          title={words.reviseKey("4")}
          disabled={busy || !feedback}
          onClick={() => choose("revise")}
        >
          {words.revise(given.length)}
        </button>
        <button
          type="button"
          className={css.button.danger}
          data-key="5"
          data-twice={words.twice.reject}
          title={words.key("5")}
          disabled={busy}
          onClick={() => choose("reject")}
        >
          {words.reject}
        </button>
      </div>
    </>
  );
}
