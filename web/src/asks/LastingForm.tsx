import { useState } from "react";
import type { AskOpened } from "../api/types";
import { useRights } from "../state/store";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import type { FormProps } from "./AskCard";
import styles from "./asks.module.css";
import { cliChangesOf, widerRulesOf } from "./request";

export type Lasting = "session" | "always";
type Scope = Lasting | "everywhere";

const HOUR = 3600;
const SCOPES: [Scope, string][] = [
  ["session", "in this session"],
  ["always", "in its project or folder"],
  ["everywhere", "in all sessions"],
];

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
    <fieldset className={styles.lasting} aria-label="Allow for longer">
      {opened.lasting === false && (
        <p className="note" data-tone="warn">
          A rule of the policy asks about such calls. It asks again, whatever you grant here.
        </p>
      )}
      {!narrowest.length && (
        <p className="hint">No rule can name exactly this call. You can write a wider one.</p>
      )}
      {rules.map((rule, place) => (
        <label key={place}>
          {place ? "and" : "Allow from now on"}
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
          as written:{" "}
          {given.map((rule) => (
            <code key={rule}>
              <Marked text={rule} code />
            </code>
          ))}
        </p>
      )}
      {wider.length > 0 && (
        <p className={styles.givenRules}>
          the CLI would allow more:{" "}
          {wider.map((rule) => (
            <button key={rule} type="button" onClick={() => setRules([rule])}>
              <Marked text={rule} code />
            </button>
          ))}
        </p>
      )}
      <div className={styles.lastingChoices}>
        <label>
          Where
          <select value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
            {SCOPES.filter(([one]) => one === "session" || manage).map(([one, words]) => (
              <option key={one} value={one}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          How long
          <select value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
            <option value={HOUR}>1 hour</option>
            <option value={24 * HOUR}>1 day</option>
            <option value={0}>
              {scope === "session" ? "as long as the session" : "until it is revoked"}
            </option>
          </select>
        </label>
      </div>
      {changes.length > 0 && (
        <div className={styles.cliChanges}>
          <p>The CLI also suggests these changes. Only those that you select are made.</p>
          {changes.map(({ index, words }) => (
            <label key={index}>
              <input
                type="checkbox"
                checked={taken.includes(index)}
                onChange={() => toggle(index)}
              />
              <span>
                <Marked text={words} code />
              </span>
            </label>
          ))}
        </div>
      )}
      <div className="buttons">
        <button
          type="button"
          className="primary"
          data-key={props.first === "session" ? "s" : "a"}
          title={`Key: ${props.first === "session" ? "s" : "a"}`}
          disabled={props.busy || (!given.length && !taken.length)}
          onClick={confirm}
        >
          {given.length ? "Allow and grant" : "Allow once, with these changes"}
        </button>
        <button type="button" onClick={props.back}>
          Back
        </button>
      </div>
    </fieldset>
  );
}
