import { type FormEvent, useState } from "react";
import { post, wordsOf } from "../../api/http";
import type { components } from "../../api/schema";
import { moment, plural } from "../../ui/format";
import { Table } from "../../ui/Table";

type Result = components["schemas"]["Replay"];
type Check = components["schemas"]["PolicyChecked"];

const DAY = 86_400_000;

/** What a policy would have done with the calls of the past. */
export function Replay() {
  const [result, setResult] = useState<Result>();
  const [check, setCheck] = useState<Check>();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = String(form.get("text") ?? "");
    const since = Date.now() - Number(form.get("days")) * DAY;
    setError("");
    setBusy(true);
    setResult(undefined);
    try {
      const read = await post<Check>("/api/policy/check", { text });
      setCheck(read);
      if (read.good) setResult(await post<Result>("/api/policy/replay", { text, since }));
    } catch (failure) {
      setError(wordsOf(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <form className="card" onSubmit={(event) => void run(event)}>
        <label className="field">
          <span>A policy to try; nothing of it comes into force</span>
          <textarea name="text" rows={10} required className="mono" spellCheck={false} />
        </label>
        <div className="buttons">
          <select name="days" aria-label="How far back" defaultValue="30">
            <option value="7">the last 7 days</option>
            <option value="30">the last 30 days</option>
            <option value="365">the last year</option>
          </select>
          <button type="submit" className="primary" disabled={busy}>
            Hold it against the past
          </button>
        </div>
      </form>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      {check && !check.good && (
        <div className="note" data-tone="bad" role="alert">
          {check.flaws.map((flaw) => (
            <p key={`${flaw.line}:${flaw.text}`}>
              line {flaw.line}: {flaw.text}
            </p>
          ))}
        </div>
      )}
      {result && <Shown result={result} />}
    </>
  );
}

function Shown({ result }: { result: Result }) {
  return (
    <section className="card" aria-label="Result of the replay">
      <h2>
        {plural(result.calls, "call")}, {result.same} treated as they were
      </h2>
      {result.truncated && <p className="why">There were more; the oldest are left out.</p>}
      <ul className="reasons">
        {Object.entries(result.counts).map(([change, count]) => (
          <li key={change}>
            {count} × {change}
          </li>
        ))}
      </ul>
      {result.changes.length > 0 && (
        <Table heads={["when", "call", "then", "now", "why"]}>
          {result.changes.slice(0, 500).map((change, index) => (
            <tr key={index}>
              <td className="when">{moment(change.at)}</td>
              <td>
                {change.tool} <code>{change.call}</code>
              </td>
              <td>
                {change.then} <span className="why">by {change.by}</span>
              </td>
              <td>{change.now}</td>
              <td className="why">{change.reasons?.join("; ")}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
