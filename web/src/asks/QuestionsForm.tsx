import { useState } from "react";
import { lookup } from "../state/lookup";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";
import { type Question, questionsOf } from "./request";

const words = catalogue.asks;

/** By the text of the question. */
type Picked = Readonly<Record<string, { labels: string[]; other: string }>>;
const NOTHING = { labels: [], other: "" };

/** The answers by question: a label, several labels, or free text. */
export function answersOf(
  questions: readonly Question[],
  picked: Picked,
): Record<string, string | string[]> {
  const answers = new Map<string, string | string[]>();
  for (const { question, multiSelect } of questions) {
    const { labels, other } = lookup(picked, question) ?? NOTHING;
    const all = other.trim() ? [...labels, other.trim()] : labels;
    if (all.length) answers.set(question, multiSelect ? all : (all.at(-1) ?? ""));
  }
  return Object.fromEntries(answers);
}

/** Questions with one choice, several choices, or free text. */
export function QuestionsForm({ opened, busy, answer }: FormProps) {
  const questions = questionsOf(opened);
  const [picked, setPicked] = useState<Picked>({});
  const answers = answersOf(questions, picked);
  const pick = (one: Question, label: string): void => {
    const { labels, other } = lookup(picked, one.question) ?? NOTHING;
    const next = one.multiSelect
      ? labels.includes(label)
        ? labels.filter((given) => given !== label)
        : [...labels, label]
      : [label];
    const own = one.multiSelect ? other : "";
    setPicked({ ...picked, [one.question]: { labels: next, other: own } });
  };
  const write = (one: Question, other: string): void => {
    const labels = one.multiSelect ? (lookup(picked, one.question)?.labels ?? []) : [];
    setPicked({ ...picked, [one.question]: { labels, other } });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        answer({ answer: "questions", answers });
      }}
    >
      {questions.map((one) => (
        <fieldset key={one.question}>
          <legend>
            {one.header && (
              <span className={styles.tag}>
                <Marked text={one.header} />
              </span>
            )}{" "}
            <Marked text={one.question} />
          </legend>
          {one.options.map((option) => (
            <label key={option.label} className={styles.option}>
              <input
                type={one.multiSelect ? "checkbox" : "radio"}
                name={`${opened.ask}/${one.question}`}
                checked={lookup(picked, one.question)?.labels.includes(option.label) ?? false}
                onChange={() => pick(one, option.label)}
              />
              <span>
                <strong>
                  <Marked text={option.label} />
                </strong>
                {option.description && (
                  <span className={css.texts.muted}>
                    {" "}
                    <Marked text={option.description} />
                  </span>
                )}
                {option.preview && (
                  <pre className={styles.preview}>
                    <Marked text={option.preview} code />
                  </pre>
                )}
              </span>
            </label>
          ))}
          <label className={styles.option}>
            <span className={css.texts.visuallyHidden}>
              {words.otherTo(withMarks(one.question))}
            </span>
            <input
              type="text"
              placeholder={words.other}
              value={lookup(picked, one.question)?.other ?? ""}
              onChange={(event) => write(one, event.target.value)}
            />
          </label>
        </fieldset>
      ))}
      <div className={`${css.layout.buttons} ${styles.buttons}`}>
        <button
          type="submit"
          className={css.button.primary}
          data-primary=""
          disabled={busy || Object.keys(answers).length < questions.length}
        >
          {words.answer}
        </button>
        <button
          type="button"
          disabled={busy}
          onClick={() => answer({ answer: "skip", message: "" })}
        >
          {words.skip}
        </button>
      </div>
    </form>
  );
}
