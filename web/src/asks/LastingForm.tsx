import { useState } from "react";
import type { AskOpened } from "../api/types";
import { useRights } from "../state/store";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";
import { cliChangesOf, widerRulesOf } from "./request";

export type Lasting = "session" | "always";
type Scope = Lasting | "everywhere";

const HOUR = 3600;
const words = catalogue.asks.lasting;
const SCOPES: readonly Scope[] = ["session", "always", "everywhere"];

/** What an answer grants besides this call: a rule, where and how long, and changes in the CLI. */
export function LastingForm(props: {
  opened: AskOpened;
  busy: boolean;
  /** The scope that was chosen first. Its key confirms. */
  first: Lasting;
  answer: FormProps["answer"];
  back: () => void;
}) {
  const { opened } = props;
  const narrowest = opened.narrowest ?? [];
  const manage = useRights().includes("manage");
  const [rules, setRules] = useState<string[]>(narrowest.length ? narrowest : [""]);
  // Beyond the session only an owner grants something.
  const [scope, setScope] = useState<Scope>(manage ? props.first : "session");
  const [seconds, setSeconds] = useState(0);
  const [taken, setTaken] = useState<readonly number[]>([]);
  const given = rules.filter((rule) => rule.trim());
  const changes = manage ? cliChangesOf(opened) : [];
  const wider = widerRulesOf(opened);
  const confirm = (): void => {
    const updates = [...taken];
    if (!given.length) return props.answer({ answer: "allow", scope: "once", updates });
    const until = seconds ? { seconds } : {};
    props.answer({ answer: "allow", scope, rules: given, updates, ...until });
  };
  const toggle = (index: number): void =>
    setTaken(taken.includes(index) ? taken.filter((one) => one !== index) : [...taken, index]);
  return (
    <fieldset className={styles.lasting} aria-label={words.title}>
      {opened.lasting === false && (
        <p className={css.note.note} data-tone="warn">
          {words.asksAgain}
        </p>
      )}
      {!narrowest.length && <p className={css.texts.hint}>{words.noExactRule}</p>}
      {rules.map((rule, place) => (
        <label key={place}>
          {place ? words.and : words.fromNowOn}
          <textarea
            value={rule}
            rows={Math.min(8, rule.split("\n").length)}
            spellCheck={false}
            onChange={(event) => setRules(rules.with(place, event.target.value))}
          />
        </label>
      ))}
      {given.some((rule) => !narrowest.includes(rule) || withMarks(rule, true) !== rule) && (
        <p className={styles.givenRules}>
          {words.asWritten}{" "}
          {given.map((rule) => (
            <code key={rule}>
              <Marked text={rule} code />
            </code>
          ))}
        </p>
      )}
      {wider.length > 0 && (
        <p className={styles.givenRules}>
          {words.wider}{" "}
          {wider.map((rule) => (
            <button key={rule} type="button" onClick={() => setRules([rule])}>
              <Marked text={rule} code />
            </button>
          ))}
        </p>
      )}
      <div className={styles.lastingChoices}>
        <label>
          {words.where}
          <select value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
            {SCOPES.filter((one) => one === "session" || manage).map((one) => (
              <option key={one} value={one}>
                {words.scopes[one]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.howLong}
          <select value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
            <option value={HOUR}>{words.hour}</option>
            <option value={24 * HOUR}>{words.day}</option>
            <option value={0}>{scope === "session" ? words.asSession : words.untilRevoked}</option>
          </select>
        </label>
      </div>
      {changes.length > 0 && (
        <div className={styles.cliChanges}>
          <p>{words.suggestions}</p>
          {changes.map(({ index, words: change }) => (
            <label key={index}>
              <input
                type="checkbox"
                checked={taken.includes(index)}
                onChange={() => toggle(index)}
              />
              <span>
                <Marked text={change} code />
              </span>
            </label>
          ))}
        </div>
      )}
      <div className={`${css.layout.buttons} ${styles.buttons}`}>
        <button
          type="button"
          className={css.button.primary}
          data-primary=""
          data-key={props.first === "session" ? "s" : "a"}
          title={catalogue.asks.key(props.first === "session" ? "s" : "a")}
          disabled={props.busy || (!given.length && !taken.length)}
          onClick={confirm}
        >
          {given.length ? words.grant : words.once}
        </button>
        <button type="button" onClick={props.back}>
          {catalogue.common.back}
        </button>
      </div>
    </fieldset>
  );
}
