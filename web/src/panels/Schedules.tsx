import { useCallback, useState } from "react";
import { Link } from "wouter";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import { useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { cost, moment } from "../ui/format";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { Table } from "../ui/Table";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

type Schedule = components["schemas"]["ScheduleShape"];
type Firing = components["schemas"]["Firing"];

const REASONS: Record<string, string> = {
  missed: "missed while the hub was down",
  still_running: "the last one was still running",
  day_limit: "limit of the day",
  queue_full: "too many were waiting",
  owner_has_no_access: "its owner has no access any more",
  machine_not_connected: "its machine did not connect",
  time_limit: "stopped at its time limit",
  not_started: "could not be started",
  turn_failed: "the turn failed",
  ended: "ended before its work was done",
  session_deleted: "the session was deleted",
  prompt_cancelled: "the prompt was cancelled",
};
const STATES: Record<Firing["state"], string> = {
  waiting: "waiting",
  started: "running",
  done: "done",
  failed: "failed",
  skipped: "skipped",
};

/** The schedules and inbound webhooks: the next time, the last result, and their buttons. */
export default function Schedules() {
  const found = useQuery(useCallback(() => get<{ schedules: Schedule[] }>("/api/schedules"), []));
  const schedules = found.value?.schedules ?? [];
  return (
    <div className="page">
      <PageHead title="Schedules" />
      <div className="buttons">
        <button type="button" className="small" onClick={found.reload} disabled={found.loading}>
          Reload
        </button>
      </div>
      <ErrorText error={found.error} />
      {schedules.map((schedule) => (
        <Card key={schedule.name} schedule={schedule} onChange={found.reload} />
      ))}
      {!schedules.length && !found.loading && !found.error && (
        <p className="muted">No schedules yet.</p>
      )}
      <p className="hint">
        To add one, run{" "}
        <code>quarterdeck schedule add NAME PROMPT --cron EXPRESSION -C FOLDER</code>, or write it
        into the configuration.
      </p>
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
    <section className="card" aria-label={schedule.name}>
      <div className="buttons">
        <strong>{schedule.name}</strong>
        <span
          className="badge"
          data-tone={schedule.paused ? "wait" : schedule.running ? "work" : "good"}
        >
          <span className="dot" aria-hidden="true" />
          {schedule.paused ? "paused" : schedule.running ? "running" : "on"}
        </span>
      </div>
      <p>
        {when(schedule)} · next: {next(schedule)}
      </p>
      <p className="muted">
        <Marked text={schedule.project ?? schedule.directory ?? ""} />
        {schedule.loop && " · loop"} · {schedule.owner}
        {schedule.source === "config" && " · in the configuration"}
        {schedule.waiting > 0 && ` · ${schedule.waiting} waiting`}
      </p>
      <p>Last: {last ? <Result firing={last} /> : "never"}</p>
      <div className="buttons">
        {mayManage && schedule.kind !== "webhook" && (
          <button type="button" disabled={action.busy} onClick={() => control("run")}>
            Run now
          </button>
        )}
        {maySteer && !schedule.paused && (
          <button type="button" disabled={action.busy} onClick={() => control("pause")}>
            Pause
          </button>
        )}
        {mayManage && schedule.paused && (
          <button type="button" disabled={action.busy} onClick={() => control("resume")}>
            Resume
          </button>
        )}
        <button type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
          History
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
      {!firings.length && !found.loading && <p className="muted">Nothing was started yet.</p>}
      {firings.length > 0 && (
        <Table heads={["planned", "result", "cost"]}>
          {firings.map((firing) => (
            <tr key={firing.id}>
              <td>{moment(firing.planned)}</td>
              <td>
                <Result firing={firing} />
              </td>
              <td className="number">{firing.cost_usd ? cost(firing.cost_usd) : "–"}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

/** What became of a start, with a link to its session. */
function Result({ firing }: { firing: Firing }) {
  const reason = firing.reason && (REASONS[firing.reason] ?? firing.reason.replaceAll("_", " "));
  const words = STATES[firing.state] + (reason ? `: ${reason}` : "");
  return (
    <>
      {firing.session ? (
        <Link href={`/s/${encodeURIComponent(firing.session)}`}>{words}</Link>
      ) : firing.loop ? (
        <Link href="/loops">{words}</Link>
      ) : (
        words
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
  if (schedule.kind === "webhook") return `request to ${schedule.when}`;
  if (schedule.kind === "every") return `every ${schedule.when}`;
  return `${schedule.kind} ${schedule.when} ${schedule.timezone ?? ""}`.trim();
}

function next(schedule: Schedule): string {
  if (schedule.paused) return schedule.paused_by ? `paused by ${schedule.paused_by}` : "paused";
  if (schedule.kind === "webhook") return "on request";
  return schedule.next === null || schedule.next === undefined ? "never" : moment(schedule.next);
}
