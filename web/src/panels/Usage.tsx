import { useCallback, useState } from "react";
import { get } from "../api/http";
import type { components } from "../api/schema";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { cost, duration, tokens } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";
import styles from "./usage.module.css";

type Report = components["schemas"]["UsageReport"];
type Row = Report["rows"][number];

const BY = ["day", "project", "model", "machine", "session"] as const;
const SINCE: Record<string, number> = { "7 days": 7, "30 days": 30, "a year": 365 };
const DAY = 86_400_000;
const today = (): string => new Date().toISOString().slice(0, 10);
const all = ({ used }: Row): number =>
  (used.input ?? 0) + (used.output ?? 0) + (used.cache_read ?? 0) + (used.cache_write ?? 0);

/** What was spent, by day, project, model, machine or session. */
export default function Usage() {
  const [by, setBy] = useState<(typeof BY)[number]>("day");
  const [days, setDays] = useState("30 days");
  const [measure, setMeasure] = useState<"cost" | "tokens">("cost");
  const sessions = useAppState((state) => state.sessions);
  const since = new Date(Date.now() - (SINCE[days] ?? 30) * DAY).toISOString().slice(0, 10);
  const report = useQuery(useCallback(() => get<Report>("/api/usage", { by, since }), [by, since]));
  const rows = report.value?.rows ?? [];
  const value = (row: Row): number => (measure === "cost" ? (row.used.cost_usd ?? 0) : all(row));
  const most = Math.max(1e-9, ...rows.map(value));
  const named = (key: string): string => {
    const session = by === "session" ? sessions.get(key) : undefined;
    return session ? nameOf(session) : key || "–";
  };
  return (
    <div className="page">
      <PageHead title="Usage" />
      <div className="buttons">
        <select
          aria-label="Group by"
          value={by}
          onChange={(event) => setBy(event.target.value as (typeof BY)[number])}
        >
          {BY.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select aria-label="Period" value={days} onChange={(event) => setDays(event.target.value)}>
          {Object.keys(SINCE).map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select
          aria-label="Measure"
          value={measure}
          onChange={(event) => setMeasure(event.target.value as "cost" | "tokens")}
        >
          <option>cost</option>
          <option>tokens</option>
        </select>
      </div>
      <ErrorText error={report.error} />
      {rows.length > 0 && by === "day" && (
        <Chart rows={rows} since={since} value={value} most={most} measure={measure} />
      )}
      <div className="table-wrap" tabIndex={0}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th>{by}</th>
              <th>cost</th>
              <th>tokens</th>
              <th>turns</th>
              <th>tool calls</th>
              <th>waiting time</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key}>
                <td>
                  {named(row.key)}
                  <span
                    className={styles.bar}
                    style={{ width: `${(value(row) / most) * 100}%` }}
                    aria-hidden="true"
                  />
                </td>
                <td className="number">{cost(row.used.cost_usd ?? 0)}</td>
                <td className="number">{tokens(all(row))}</td>
                <td className="number">{row.used.turns}</td>
                <td className="number">{row.used.tool_calls}</td>
                <td className="number">
                  {row.used.waiting_ms ? duration(row.used.waiting_ms) : "–"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!rows.length && !report.loading && <p className="muted">No usage in this period.</p>}
    </div>
  );
}

/** Every day from the first to the last, including days without usage. */
export function eachDay(first: string, last: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}

/** A column for each day. */
function Chart(props: {
  rows: Row[];
  since: string;
  value: (row: Row) => number;
  most: number;
  measure: "cost" | "tokens";
}) {
  const format = props.measure === "cost" ? cost : tokens;
  const byDay = new Map(props.rows.map((row) => [row.key, props.value(row)]));
  const last = [today(), ...byDay.keys()].sort().at(-1) ?? today();
  const days = eachDay([props.since, ...byDay.keys()].sort()[0] ?? props.since, last);
  const width = 100 / days.length;
  return (
    <figure className={styles.chart}>
      <figcaption>
        <span>{format(props.most)}</span>
        <span>highest day</span>
      </figcaption>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${props.measure} by day; the table has the numbers`}
      >
        {days.map((day, index) => {
          const value = byDay.get(day) ?? 0;
          const height = value ? Math.max(0.5, (value / props.most) * 40) : 0;
          return (
            <rect
              key={day}
              x={index * width + width * 0.12}
              y={40 - height}
              width={width * 0.76}
              height={height}
            >
              <title>{`${day}: ${format(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p className={styles.axis}>
        <span>{days[0]}</span>
        <span>{days.at(-1)}</span>
      </p>
    </figure>
  );
}
