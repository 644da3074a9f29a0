import { type FormEvent, useState } from "react";
import { post } from "../../api/http";
import type { components } from "../../api/schema";
import { ErrorText } from "../../ui/ErrorText";
import { moment, plural } from "../../ui/format";
import { Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import styles from "./policy.module.css";
import { Warnings } from "./Warnings";

type Result = components["schemas"]["Replay"];
type Check = components["schemas"]["PolicyChecked"];

const DAY = 86_400_000;

/** How another policy would have decided past calls. */
export function Replay() {
  const [result, setResult] = useState<Result>();
  const [check, setCheck] = useState<Check>();
  const action = useAction();
  const replay = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = String(form.get("text") ?? "");
    const since = Date.now() - Number(form.get("days")) * DAY;
    setResult(undefined);
    void action.run(async () => {
      const read = await post<Check>("/api/policy/check", { text });
      setCheck(read);
      if (read.good) setResult(await post<Result>("/api/policy/replay", { text, since }));
    });
  };
  return (
    <>
      <form className="card" onSubmit={replay}>
        <label className="field">
          <span>Policy to test (it is not put in force)</span>
          <textarea name="text" rows={10} required className="mono" spellCheck={false} />
        </label>
        <div className="buttons">
          <select name="days" aria-label="Period" defaultValue="30">
            <option value="7">the last 7 days</option>
            <option value="30">the last 30 days</option>
            <option value="365">the last year</option>
          </select>
          <button type="submit" className="primary" disabled={action.busy}>
            Run replay
          </button>
        </div>
      </form>
      <ErrorText error={action.error} />
      {check && !check.good && (
        <div className="note" data-tone="bad" role="alert">
          {check.flaws.map((flaw) => (
            <p key={`${flaw.line}:${flaw.text}`}>
              line {flaw.line}: {flaw.text}
            </p>
          ))}
        </div>
      )}
      <Warnings warnings={check?.warnings} />
      {result && <Shown result={result} />}
    </>
  );
}

function Shown({ result }: { result: Result }) {
  return (
    <section className="card" aria-label="Result of the replay">
      <h2>
        {plural(result.calls, "call")}, {result.same} unchanged
      </h2>
      {result.truncated && <p className="muted">There were more calls; the oldest are left out.</p>}
      <ul className={styles.reasons}>
        {Object.entries(result.counts).map(([change, count]) => (
          <li key={change}>
            {count} × {change}
          </li>
        ))}
      </ul>
      {result.changes.length > 0 && (
        <Table heads={["time", "call", "then", "now", "reasons"]}>
          {result.changes.slice(0, 500).map((change, index) => (
            <tr key={index}>
              <td className="when">{moment(change.at)}</td>
              <td>
                {change.tool} <code>{change.call}</code>
              </td>
              <td>
                {change.then} <span className="muted">by {change.by}</span>
              </td>
              <td>{change.now}</td>
              <td className="muted">{change.reasons?.join("; ")}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
