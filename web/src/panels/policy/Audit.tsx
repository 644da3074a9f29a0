import { ScrollText } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { Link } from "wouter";
import { get } from "../../api/http";
import type { components } from "../../api/schema";
import type { EventOf, Stored } from "../../api/types";
import { sandboxDetails, sandboxLabel } from "../../session/sandbox";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { text as catalogue } from "../../text";
import { Empty } from "../../ui/Empty";
import { ErrorText } from "../../ui/ErrorText";
import { moment } from "../../ui/format";
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

const words = catalogue.policy.audit;
const WANTED = 50;
const LIMIT = 500;

type Kind = keyof typeof words.kinds;

/** Whether an entry is of the kind that is asked for. */
export function isOfKind({ event }: Entry, kind: Kind): boolean {
  const connection = event.kind === "sandbox.connection";
  switch (kind) {
    case "denied":
      if (event.kind === "decided") return event.verdict === "deny";
      if (event.kind === "ask.answered") return !event.allowed;
      return connection && !event.allowed;
    case "people":
      return event.kind === "ask.answered" || (event.kind === "decided" && event.by === "person");
    case "sandbox":
      return connection || event.kind === "sandbox.started";
    case "refused":
      return connection && !event.allowed;
    default:
      return true;
  }
}

/** The entries up to a position, newest first, at least so many; and where they begin. */
export async function entriesBefore(
  end: number,
  ask: (after: number) => Promise<Page>,
  wanted = WANTED,
  kind: Kind = "all",
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
        const entry = stored as Entry;
        if (stored.position <= begin && isOfKind(entry, kind)) piece.push(entry);
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
  const [kind, setKind] = useState<Kind>("all");
  const [checked, setChecked] = useState<Checked>();
  const [entries, setEntries] = useState<Entry[]>([]);
  const [begin, setBegin] = useState(0);
  const { run, busy, error } = useAction();
  const load = useCallback(
    (of: string, kind: Kind, end?: number): Promise<boolean> =>
      run(async () => {
        let upto = end;
        if (upto === undefined) {
          const now = await get<Checked>("/api/audit/verify");
          setChecked(now);
          upto = now.head.position;
        }
        const ask = (after: number): Promise<Page> =>
          get("/api/audit", { after, limit: LIMIT, session: of || undefined });
        const [found, from] = await entriesBefore(upto, ask, WANTED, kind);
        setEntries((before) => (end === undefined ? found : [...before, ...found]));
        setBegin(from);
      }),
    [run],
  );
  useEffect(() => void load(session, kind), [load, session, kind]);
  return (
    <>
      <div className="buttons">
        <select
          aria-label={words.session}
          value={session}
          onChange={(event) => setSession(event.target.value)}
        >
          <option value="">{words.all}</option>
          {[...sessions.values()].map((one) => (
            <option key={one.session} value={one.session}>
              {nameOf(one)}
            </option>
          ))}
        </select>
        <select
          aria-label={words.kind}
          value={kind}
          onChange={(event) => setKind(event.target.value as Kind)}
        >
          {Object.entries(words.kinds).map(([key, word]) => (
            <option key={key} value={key}>
              {word}
            </option>
          ))}
        </select>
        <button type="button" disabled={busy} onClick={() => void load(session, kind)}>
          {words.verify}
        </button>
      </div>
      {checked && <Chain checked={checked} />}
      <ErrorText error={error} />
      {entries.length > 0 && (
        <Table heads={Object.values(words.heads)}>
          {entries.map((entry) => (
            <Row key={entry.position} entry={entry} />
          ))}
        </Table>
      )}
      {checked && !entries.length && !busy && (
        <Empty icon={ScrollText} title={words.none}>
          {words.noneHint}
        </Empty>
      )}
      {begin > 0 && entries.length > 0 && (
        <button type="button" disabled={busy} onClick={() => void load(session, kind, begin)}>
          {words.earlier}
        </button>
      )}
    </>
  );
}

/** A run's sandbox, or a host that its proxy let pass or refused. */
function SandboxRow({ entry: { session, at, event } }: { entry: Entry }) {
  const link = `/s/${encodeURIComponent(session)}`;
  if (event.kind === "sandbox.connection") {
    const times = (event.count ?? 1) > 1 ? words.times(event.count ?? 1) : "";
    return (
      <tr>
        <td className="when">{moment(at)}</td>
        <td>
          <Verdict word={event.allowed ? "allow" : "deny"} />
        </td>
        <td>
          <Link href={link}>{words.connection}</Link>{" "}
          <code>
            <Marked text={`${event.host}:${event.port}`} code />
          </code>
        </td>
        <td>{words.sandbox}</td>
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
        <Link href={link}>{words.start}</Link> {sandboxLabel(event.state)}
      </td>
      <td>{words.runner}</td>
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
        <Link href={`/s/${encodeURIComponent(session)}`}>{words.access}</Link>
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
    decided && event.rule ? words.rule(event.rule, event.source ?? "") : decided && event.reasons;
  return (
    <tr>
      <td className="when">{moment(at)}</td>
      <td>
        <Verdict word={verdict} />
      </td>
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>
          {decided ? event.tool : words.answer}
        </Link>{" "}
        {decided && (
          <code>
            <Marked text={event.title} code />
          </code>
        )}
        {decided && event.rewritten && <span className="muted"> {words.changed}</span>}
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
      {flaws.length ? words.flaws(flaws.length) : `${words.good(checked.entries)} `}
      {!flaws.length && (
        <code className="secret">
          {checked.head.position}:{checked.head.seal}
        </code>
      )}
      {flaws.slice(0, 20).map((flaw) => (
        <p key={flaw.position}>{words.flaw(flaw.position, flaw.text)}</p>
      ))}
    </div>
  );
}
