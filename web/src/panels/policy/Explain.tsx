import { type FormEvent, useState } from "react";
import { post, wordsOf } from "../../api/http";
import type { components } from "../../api/schema";
import { nameOf } from "../../state/fleet";
import { useDeck } from "../../state/store";
import { Table } from "../../ui/Table";
import { Verdict } from "./Verdict";

type Explanation = components["schemas"]["Explanation"];

/** What would become of a call, and which rule says so. */
export function Explain({ names }: { names: readonly string[] }) {
  const fleet = useDeck((deck) => deck.fleet);
  const [found, setFound] = useState<Explanation>();
  const [error, setError] = useState("");
  const ask = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].filter(([, value]) => value !== "");
    setError("");
    try {
      setFound(await post<Explanation>("/api/policy/explain", Object.fromEntries(given)));
    } catch (failure) {
      setFound(undefined);
      setError(wordsOf(failure));
    }
  };
  return (
    <>
      <form className="card" onSubmit={(event) => void ask(event)}>
        <div className="columns">
          <label className="field">
            <span>Tool</span>
            <input name="tool" required defaultValue="Bash" />
          </label>
          <label className="field">
            <span>Session</span>
            <select name="session" defaultValue="">
              <option value="">none</option>
              {[...fleet.values()].map((session) => (
                <option key={session.session} value={session.session}>
                  {nameOf(session)}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>Policy</span>
            <select name="policy" defaultValue="">
              <option value="">what is in force</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </div>
        <label className="field">
          <span>The command, the file, or the whole input as JSON</span>
          <textarea name="argument" rows={3} className="mono" placeholder="git push --force" />
        </label>
        <div className="buttons">
          <button type="submit" className="primary">
            Explain
          </button>
        </div>
      </form>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      {found && <Explained found={found} />}
    </>
  );
}

function Explained({ found }: { found: Explanation }) {
  return (
    <section className="card" aria-label="Explanation">
      <div className="buttons">
        <Verdict word={found.verdict} />
        {found.rule && (
          <span>
            by «{found.rule}» <span className="why">{found.source}</span>
          </span>
        )}
      </div>
      {found.message && <p>{found.message}</p>}
      <ul className="reasons">
        {found.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      {found.rewritten && <pre className="raw">{found.rewritten}</pre>}
      <Table heads={["what the call needs", "rules about it"]}>
        {found.parts.map((part, index) => (
          <tr key={index}>
            <td>
              <span className="why">{part.kind}</span> <code>{part.what}</code>
              {part.why && <p className="why">{part.why}</p>}
            </td>
            <td>
              {part.free && <span className="why">needs nobody's leave</span>}
              {part.rules?.map((rule, at) => (
                <p key={at}>
                  <Verdict word={rule.verdict} /> {rule.rule}{" "}
                  <span className="why">
                    {rule.source}
                    {rule.sure === false && " (perhaps)"}
                  </span>
                </p>
              ))}
              {!part.free && !part.rules?.length && <span className="why">none</span>}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
