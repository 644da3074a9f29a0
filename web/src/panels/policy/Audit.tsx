import { useCallback, useEffect, useState } from "react";
import { Link } from "wouter";
import { get } from "../../api/http";
import type { components } from "../../api/schema";
import type { EventOf, Stored } from "../../api/types";
import { sandboxDetails, sandboxLabel } from "../../session/sandbox";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { ErrorText } from "../../ui/ErrorText";
import { moment, plural } from "../../ui/format";
import { Marked } from "../../ui/Marked";
import { Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import { Verdict } from "./Verdict";

type Checked = components["schemas"]["Checked"];
type Entry = Omit<Stored, "event"> & {
  event:
    | EventOf<"decided">
    | EventOf<"ask.answered">
    | EventOf<"sandbox.started">
    | EventOf<"sandbox.connection">
    | EventOf<"noted">;
};
interface Page {
  events: Stored[];
  next: number | null;
}

const WANTED = 50;
const LIMIT = 500;

/** The entries up to a position, newest first, at least so many; and where they begin. */
export async function entriesBefore(
  end: number,
  ask: (after: number) => Promise<Page>,
  wanted = WANTED,
): Promise<[Entry[], number]> {
  let begin = end;
  let width = LIMIT;
  let found: Entry[] = [];
  // The log can only be read forwards, and its entries are sparse: the steps back grow.
  while (begin > 0 && found.length < wanted) {
    const from = Math.max(0, begin - width);
    const piece: Entry[] = [];
    for (let after: number | null = from; after !== null && after < begin; ) {
      const page: Page = await ask(after);
      for (const stored of page.events) {
        if (stored.position <= begin) piece.push(stored as Entry);
      }
      after = page.next;
    }
    found = [...found, ...piece.reverse()];
    begin = from;
    width *= 4;
  }
  return [found, begin];
}

/** Who or what decided about each call, newest first. */
export function Audit() {
  const sessions = useAppState((state) => state.sessions);
  const [session, setSession] = useState("");
  const [checked, setChecked] = useState<Checked>();
  const [entries, setEntries] = useState<Entry[]>([]);
  const [begin, setBegin] = useState(0);
  const { run, busy, error } = useAction();
  const load = useCallback(
    (of: string, end?: number): Promise<boolean> =>
      run(async () => {
        let upto = end;
        if (upto === undefined) {
          const now = await get<Checked>("/api/audit/verify");
          setChecked(now);
          upto = now.head.position;
        }
        const ask = (after: number): Promise<Page> =>
          get("/api/audit", { after, limit: LIMIT, session: of || undefined });
        const [found, from] = await entriesBefore(upto, ask);
        setEntries((before) => (end === undefined ? found : [...before, ...found]));
        setBegin(from);
      }),
    [run],
  );
  useEffect(() => void load(session), [load, session]);
  return (
    <>
      <div className="buttons">
        <select
          aria-label="Session"
          value={session}
          onChange={(event) => setSession(event.target.value)}
        >
          <option value="">all sessions</option>
          {[...sessions.values()].map((one) => (
            <option key={one.session} value={one.session}>
              {nameOf(one)}
            </option>
          ))}
        </select>
        <button type="button" disabled={busy} onClick={() => void load(session)}>
          Verify and reload
        </button>
      </div>
      {checked && <Chain checked={checked} />}
      <ErrorText error={error} />
      <Table heads={["time", "verdict", "call", "by", "reasons"]}>
        {entries.map((entry) => (
          <Row key={entry.position} entry={entry} />
        ))}
      </Table>
      {checked && !entries.length && <p className="muted">No decisions yet.</p>}
      {begin > 0 && entries.length > 0 && (
        <button type="button" disabled={busy} onClick={() => void load(session, begin)}>
          Load earlier
        </button>
      )}
    </>
  );
}

/** A run's sandbox, or a host that its proxy let pass or refused. */
function SandboxRow({ entry: { session, at, event } }: { entry: Entry }) {
  const link = `/s/${encodeURIComponent(session)}`;
  if (event.kind === "sandbox.connection") {
    const times = (event.count ?? 1) > 1 ? `${event.count} times` : "";
    return (
      <tr>
        <td className="when">{moment(at)}</td>
        <td>
          <Verdict word={event.allowed ? "allow" : "deny"} />
        </td>
        <td>
          <Link href={link}>connection</Link>{" "}
          <code>
            <Marked text={`${event.host}:${event.port}`} code />
          </code>
        </td>
        <td>sandbox</td>
        <td className="muted">{times}</td>
      </tr>
    );
  }
  if (event.kind !== "sandbox.started") return null;
  return (
    <tr>
      <td className="when">{moment(at)}</td>
      <td />
      <td>
        <Link href={link}>start</Link> {sandboxLabel(event.state)}
      </td>
      <td>runner</td>
      <td className="muted">
        <Marked text={sandboxDetails(event.state)} />
      </td>
    </tr>
  );
}

/** Access that was taken back. */
function AccessRow({ session, at, text }: { session: string; at: number; text: string }) {
  return (
    <tr>
      <td className="when">{moment(at)}</td>
      <td />
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>access</Link>
      </td>
      <td />
      <td>
        <Marked text={text} />
      </td>
    </tr>
  );
}

function Row({ entry }: { entry: Entry }) {
  const { session, at, event } = entry;
  if (event.kind === "noted") return <AccessRow session={session} at={at} text={event.text} />;
  if (event.kind === "sandbox.started" || event.kind === "sandbox.connection") {
    return <SandboxRow entry={entry} />;
  }
  const decided = event.kind === "decided";
  const verdict = decided ? event.verdict : event.allowed ? "allow" : "deny";
  const why =
    decided && event.rule ? `${event.rule} (${event.source ?? ""})` : decided && event.reasons;
  return (
    <tr>
      <td className="when">{moment(at)}</td>
      <td>
        <Verdict word={verdict} />
      </td>
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>{decided ? event.tool : "answer"}</Link>{" "}
        {decided && (
          <code>
            <Marked text={event.title} code />
          </code>
        )}
        {decided && event.rewritten && <span className="muted"> (changed)</span>}
      </td>
      <td>{event.by}</td>
      <td className="muted">{Array.isArray(why) ? why.join("; ") : why}</td>
    </tr>
  );
}

function Chain({ checked }: { checked: Checked }) {
  const flaws = checked.flaws ?? [];
  return (
    <div className="note" data-tone={flaws.length ? "bad" : "good"} role="status">
      {flaws.length
        ? `${plural(flaws.length, "entry was", "entries were")} changed or removed:`
        : `${plural(checked.entries, "entry", "entries")}, none changed. Keep this head to prove it later: `}
      {!flaws.length && (
        <code className="secret">
          {checked.head.position}:{checked.head.seal}
        </code>
      )}
      {flaws.slice(0, 20).map((flaw) => (
        <p key={flaw.position}>
          {flaw.position}: {flaw.text}
        </p>
      ))}
    </div>
  );
}
