import { CalendarClock, RotateCw } from "lucide-react";
import { useCallback, useState } from "react";
import { Link } from "wouter";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import { lookup } from "../state/lookup";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { cost, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { Table } from "../ui/Table";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

type Schedule = components["schemas"]["ScheduleShape"];
type Firing = components["schemas"]["Firing"];

const words = text.schedules;

/** The schedules and inbound webhooks: the next time, the last result, and their buttons. */
export default function Schedules() {
  const found = useQuery(useCallback(() => get<{ schedules: Schedule[] }>("/api/schedules"), []));
  const schedules = found.value?.schedules ?? [];
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title}>
        <button
          type="button"
          className={css.button.small}
          onClick={found.reload}
          disabled={found.loading}
        >
          <Icon of={RotateCw} size={14} />
          {words.reload}
        </button>
      </PageHead>
      <ErrorText error={found.error} />
      {schedules.map((schedule) => (
        <Card key={schedule.name} schedule={schedule} onChange={found.reload} />
      ))}
      {!schedules.length && !found.loading && !found.error && (
        <Empty icon={CalendarClock} title={words.none}>
          {words.add} <code>{words.addCommand}</code> {words.orConfigure}
        </Empty>
      )}
      {schedules.length > 0 && (
        <p className={css.texts.hint}>
          {words.add} <code>{words.addCommand}</code> {words.orConfigure}
        </p>
      )}
    </div>
  );
}

function Card({ schedule, onChange }: { schedule: Schedule; onChange: () => void }) {
  const rights = useAppState((state) => state.me?.rights);
  const mayManage = rights?.includes("manage") ?? false;
  const maySteer = rights?.includes("steer") ?? false;
  const [shown, setShown] = useState(false);
  const action = useAction();
  const control = (name: "pause" | "resume" | "run"): void => {
    void action
      .run(() => post(`/api/schedules/${encodeURIComponent(schedule.name)}/${name}`))
      .then((done) => done && onChange());
  };
  const last = schedule.last;
  return (
    <section className={css.card.card} aria-label={schedule.name}>
      <div className={css.layout.buttons}>
        <strong>{schedule.name}</strong>
        <span
          className={css.badge.badge}
          data-tone={schedule.paused ? "wait" : schedule.running ? "work" : "good"}
        >
          <span className={css.badge.dot} aria-hidden="true" />
          {schedule.paused ? words.paused : schedule.running ? words.running : words.on}
        </span>
      </div>
      <p>
        {when(schedule)} · {words.next(next(schedule))}
      </p>
      <p className={css.texts.muted}>
        <Marked text={schedule.project ?? schedule.directory ?? ""} />
        {schedule.loop && ` · ${words.loop}`} · {schedule.owner}
        {schedule.source === "config" && ` · ${words.configured}`}
        {schedule.waiting > 0 && ` · ${words.waiting(schedule.waiting)}`}
      </p>
      <p>
        {words.last} {last ? <Result firing={last} /> : words.never}
      </p>
      <div className={css.layout.buttons}>
        {mayManage && schedule.kind !== "webhook" && (
          <button type="button" disabled={action.busy} onClick={() => control("run")}>
            {words.run}
          </button>
        )}
        {maySteer && !schedule.paused && (
          <button type="button" disabled={action.busy} onClick={() => control("pause")}>
            {words.pause}
          </button>
        )}
        {mayManage && schedule.paused && (
          <button type="button" disabled={action.busy} onClick={() => control("resume")}>
            {words.resume}
          </button>
        )}
        <button type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
          {words.history}
        </button>
      </div>
      <ErrorText error={action.error} />
      {shown && <History name={schedule.name} latest={last?.id ?? ""} />}
    </section>
  );
}

function History({ name, latest }: { name: string; latest: string }) {
  const path = `/api/schedules/${encodeURIComponent(name)}/firings`;
  const ask = useCallback(
    // A new start makes the list new.
    () => (latest ? get<{ firings: Firing[] }>(path) : Promise.resolve({ firings: [] })),
    [path, latest],
  );
  const found = useQuery(ask);
  const firings = found.value?.firings ?? [];
  return (
    <>
      <ErrorText error={found.error} />
      {!firings.length && !found.loading && <p className={css.texts.muted}>{words.nothingYet}</p>}
      {firings.length > 0 && (
        <Table heads={Object.values(words.heads)}>
          {firings.map((firing) => (
            <tr key={firing.id}>
              <td>{moment(firing.planned)}</td>
              <td>
                <Result firing={firing} />
              </td>
              <td className={css.texts.number}>{firing.cost_usd ? cost(firing.cost_usd) : "–"}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

/** What became of a start, with a link to its session. */
function Result({ firing }: { firing: Firing }) {
  const reason =
    firing.reason && (lookup(words.reasons, firing.reason) ?? firing.reason.replaceAll("_", " "));
  const result = words.result(words.states[firing.state], reason ?? "");
  return (
    <>
      {firing.session ? (
        <Link href={`/s/${encodeURIComponent(firing.session)}`}>{result}</Link>
      ) : firing.loop ? (
        <Link href="/loops">{result}</Link>
      ) : (
        result
      )}
      {firing.detail && (
        <>
          {" "}
          (<Marked text={firing.detail} />)
        </>
      )}
    </>
  );
}

export function when(schedule: Schedule): string {
  if (schedule.kind === "webhook") return words.request(schedule.when);
  if (schedule.kind === "every") return words.every(schedule.when);
  return `${schedule.kind} ${schedule.when} ${schedule.timezone ?? ""}`.trim();
}

function next(schedule: Schedule): string {
  if (schedule.paused)
    return schedule.paused_by ? words.pausedBy(schedule.paused_by) : words.paused;
  if (schedule.kind === "webhook") return words.onRequest;
  return schedule.next === null || schedule.next === undefined
    ? words.never
    : moment(schedule.next);
}
