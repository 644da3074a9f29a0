import { type FormEvent, useState } from "react";
import { post } from "../../api/http";
import type { components } from "../../api/schema";
import { text as catalogue } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { moment } from "../../ui/format";
import { Marked } from "../../ui/Marked";
import { Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import styles from "./policy.module.css";
import { Warnings } from "./Warnings";

type Result = components["schemas"]["Replay"];
type Check = components["schemas"]["PolicyChecked"];

export const DAY = 86_400_000;
const words = catalogue.policy.replay;

/** How another policy would have decided past calls. */
export function Replay() {
  const [result, setResult] = useState<Result>();
  const [check, setCheck] = useState<Check>();
  const [days, setDays] = useState("30");
  const action = useAction();
  const replay = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = String(form.get("text") ?? "");
    const since = Date.now() - Number(days) * DAY;
    setResult(undefined);
    void action.run(async () => {
      const read = await post<Check>("/api/policy/check", { text });
      setCheck(read);
      if (read.good) setResult(await post<Result>("/api/policy/replay", { text, since }));
    });
  };
  return (
    <>
      <form className={css.card.card} onSubmit={replay}>
        <label className={css.field.field}>
          <span>{words.policy}</span>
          <textarea name="text" rows={10} required className={css.texts.mono} spellCheck={false} />
        </label>
        <div className={css.layout.buttons}>
          <Period value={days} onChange={setDays} />
          <button type="submit" className={css.button.primary} disabled={action.busy}>
            {words.run}
          </button>
        </div>
      </form>
      <ErrorText error={action.error} />
      {check && !check.good && (
        <div className={css.note.note} data-tone="bad" role="alert">
          {check.flaws.map((flaw) => (
            <p key={`${flaw.line}:${flaw.text}`}>{catalogue.policy.flaw(flaw.line, flaw.text)}</p>
          ))}
        </div>
      )}
      <Warnings warnings={check?.warnings} />
      {result && (
        <section className={css.card.card} aria-label={words.result}>
          <h2>{words.result}</h2>
          <ReplayResult result={result} />
        </section>
      )}
    </>
  );
}

/** How far back. */
export function Period(props: { value: string; onChange: (days: string) => void }) {
  return (
    <select
      aria-label={words.period}
      value={props.value}
      onChange={(event) => props.onChange(event.target.value)}
    >
      <option value="7">{words.week}</option>
      <option value="30">{words.month}</option>
      <option value="365">{words.year}</option>
    </select>
  );
}

/** The decisions that would be different. */
export function ReplayResult({ result }: { result: Result }) {
  return (
    <>
      <h3>{words.calls(result.calls, result.same)}</h3>
      {result.truncated && <p className={css.texts.muted}>{words.truncated}</p>}
      <ul className={styles.reasons}>
        {Object.entries(result.counts).map(([change, count]) => (
          <li key={change}>{words.change(count, change)}</li>
        ))}
      </ul>
      {result.changes.length > 0 && (
        <Table heads={words.heads}>
          {result.changes.slice(0, 500).map((change, index) => (
            <tr key={index}>
              <td className={css.texts.when}>{moment(change.at)}</td>
              <td>
                {change.tool}{" "}
                <code>
                  <Marked text={change.call} code />
                </code>
              </td>
              <td>
                {change.then} <span className={css.texts.muted}>{words.by(change.by)}</span>
              </td>
              <td>{change.now}</td>
              <td className={css.texts.muted}>{change.reasons?.join("; ")}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
