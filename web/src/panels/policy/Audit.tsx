import { ScrollText } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { get } from "../../api/http";
import type { components } from "../../api/schema";
import type { EventOf, Stored } from "../../api/types";
import { sandboxDetails, sandboxLabel } from "../../session/sandbox";
import { reasonTexts, textOf } from "../../state/coded";
import { lookup } from "../../state/lookup";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { text as catalogue } from "../../text";
import { css } from "../../ui/css";
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
    | EventOf<"program.acted">
    | EventOf<"noted">;
};
interface Page {
  events: Stored[];
  next: number | null;
}

const words = catalogue.policy.audit;
const WANTED = 50;
/** Where a log begins that is read from its end. */
const NEWEST = 0;

type Kind = keyof typeof words.kinds;

/** What a call is about, in words: many titles are the name of the tool, or begin with it. */
export function callOf(tool: string, title: string): { tool: string; title: string } {
  if (title === tool) return { tool, title: "" };
  return { tool, title: title.startsWith(`${tool} `) ? title.slice(tool.length + 1) : title };
}

/** Who or what decided about each call, newest first. */
export function Audit() {
  const sessions = useAppState((state) => state.sessions);
  const [session, setSession] = useState("");
  const [kind, setKind] = useState<Kind>("all");
  const [checked, setChecked] = useState<Checked>();
  const [entries, setEntries] = useState<Entry[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const { run, busy, error } = useAction();
  // An answer about another choice than the last one is dropped.
  const last = useRef("");
  const load = useCallback(
    (of: string, kind: Kind, before: number): Promise<boolean> =>
      run(async () => {
        const choice = `${kind} ${of}`;
        last.current = choice;
        const page = await get<Page>("/api/audit", {
          before,
          limit: WANTED,
          session: of || undefined,
          kind: kind === "all" ? undefined : kind,
        });
        if (last.current !== choice) return;
        const found = page.events as Entry[];
        setEntries((shown) => (before === NEWEST ? found : [...shown, ...found]));
        setNext(page.next);
      }),
    [run],
  );
  const verify = useCallback(
    (): Promise<boolean> => run(async () => setChecked(await get<Checked>("/api/audit/verify"))),
    [run],
  );
  useEffect(() => void verify(), [verify]);
  useEffect(() => void load(session, kind, NEWEST), [load, session, kind]);
  return (
    <>
      <div className={css.layout.buttons}>
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
        <button
          type="button"
          disabled={busy}
          onClick={() => void verify().then(() => load(session, kind, NEWEST))}
        >
          {words.verify}
        </button>
      </div>
      {checked && <Chain checked={checked} />}
      <ErrorText error={error} />
      {entries.length > 0 && (
        <Table heads={Object.values(words.heads)}>
          {entries.map((entry) => (
            <Row key={entry.position} entry={entry} decided={decidedBy(entry, entries)} />
          ))}
        </Table>
      )}
      {checked && !entries.length && !busy && (
        <Empty icon={ScrollText} title={next === null ? words.none : words.noneYet}>
          {next === null ? words.noneHint : words.noneYetHint}
        </Empty>
      )}
      {next !== null && (
        <button type="button" disabled={busy} onClick={() => void load(session, kind, next)}>
          {entries.length ? words.earlier : words.searchOn}
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
        <td className={css.texts.when}>{moment(at)}</td>
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
        <td className={css.texts.muted}>{times}</td>
      </tr>
    );
  }
  if (event.kind !== "sandbox.started") return null;
  return (
    <tr>
      <td className={css.texts.when}>{moment(at)}</td>
      <td />
      <td>
        <Link href={link}>{words.start}</Link> {sandboxLabel(event.state)}
      </td>
      <td>{words.runner}</td>
      <td className={css.texts.muted}>
        <Marked text={sandboxDetails(event.state)} />
      </td>
    </tr>
  );
}

/** What a program has asked of its agent, or its hook has decided. */
function ActRow(props: { session: string; at: number; event: EventOf<"program.acted"> }) {
  const { session, at, event } = props;
  return (
    <tr>
      <td className={css.texts.when}>{moment(at)}</td>
      <td>{event.refused && <Verdict word="deny" />}</td>
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>
          {lookup(words.acts, event.act) ?? event.act}
        </Link>{" "}
        <code>
          <Marked text={event.tool ? `${event.what} ${event.tool}` : event.what} code />
        </code>
      </td>
      <td>{event.by}</td>
      <td className={css.texts.muted}>
        <Marked text={event.detail ?? ""} />
      </td>
    </tr>
  );
}

/** What a person has changed: the policy, a grant, a token, access to a session. */
function ChangeRow(props: { session: string; at: number; event: EventOf<"noted"> }) {
  const { session, at, event } = props;
  return (
    <tr>
      <td className={css.texts.when}>{moment(at)}</td>
      <td />
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>
          {lookup(words.changes, event.about ?? "") ?? words.access}
        </Link>
      </td>
      <td>{event.by}</td>
      <td>
        <Marked text={textOf(event.coded, event.text)} />
      </td>
    </tr>
  );
}

/** The decision that an answer led to: it names the call, which the answer itself does not. */
export function decidedBy(entry: Entry, among: Entry[]): EventOf<"decided"> | undefined {
  const { event, session } = entry;
  if (event.kind !== "ask.answered") return undefined;
  for (const one of among) {
    if (one.session !== session || one.event.kind !== "decided") continue;
    if (one.event.ask === event.ask) return one.event;
  }
  return undefined;
}

function Row({ entry, decided: made }: { entry: Entry; decided: EventOf<"decided"> | undefined }) {
  const { session, at, event } = entry;
  if (event.kind === "noted") return <ChangeRow session={session} at={at} event={event} />;
  if (event.kind === "program.acted") return <ActRow session={session} at={at} event={event} />;
  if (event.kind === "sandbox.started" || event.kind === "sandbox.connection") {
    return <SandboxRow entry={entry} />;
  }
  const decided = event.kind === "decided";
  const told = decided ? event : made;
  const call = told && callOf(told.tool, told.title);
  const verdict = decided ? event.verdict : event.allowed ? "allow" : "deny";
  const why =
    decided && event.rule
      ? words.rule(event.rule, event.source ?? "")
      : decided && reasonTexts(event);
  return (
    <tr>
      <td className={css.texts.when}>{moment(at)}</td>
      <td>
        <Verdict word={verdict} />
      </td>
      <td>
        <Link href={`/s/${encodeURIComponent(session)}`}>{call?.tool ?? words.answer}</Link>{" "}
        {call?.title && (
          <code>
            <Marked text={call.title} code />
          </code>
        )}
        {decided && event.rewritten && <span className={css.texts.muted}> {words.changed}</span>}
      </td>
      <td>{event.by}</td>
      <td className={css.texts.muted}>{Array.isArray(why) ? why.join("; ") : why}</td>
    </tr>
  );
}

function Chain({ checked }: { checked: Checked }) {
  const flaws = checked.flaws ?? [];
  return (
    <div className={css.note.note} data-tone={flaws.length ? "bad" : "good"} role="status">
      {flaws.length ? words.flaws(flaws.length) : `${words.good(checked.entries)} `}
      {!flaws.length && (
        <code className={css.texts.secret}>
          {checked.head.position}:{checked.head.seal}
        </code>
      )}
      {flaws.slice(0, 20).map((flaw) => (
        <p key={flaw.position}>{words.flaw(flaw.position, flaw.text)}</p>
      ))}
    </div>
  );
}
