import { ChartColumn } from "lucide-react";
import { useCallback, useState } from "react";
import { Link } from "wouter";
import { get } from "../api/http";
import type { components } from "../api/schema";
import type { Session } from "../api/types";
import { BudgetForm } from "../session/head/Budget";
import { lookup } from "../state/lookup";
import { nameOf } from "../state/sessions";
import { useAppState, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { ago, cost, duration, moment, tokens } from "../ui/format";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";
import { limitReached, monthForecast, pace } from "./forecast";
import styles from "./usage.module.css";

type Report = components["schemas"]["UsageReport"];
type Row = Report["rows"][number];
type Used = Report["total"];
type Limit = Report["limits"][number];
type Measure = keyof typeof words.measures;
type By = keyof typeof words.by;

const words = text.usage;
const DAY = 86_400_000;
const today = (): string => new Date().toISOString().slice(0, 10);
const all = (used: Used): number =>
  (used.input ?? 0) + (used.output ?? 0) + (used.cache_read ?? 0) + (used.cache_write ?? 0);

/** What was spent in all, what is left of limits and budgets, and where it went. */
export default function Usage() {
  const [by, setBy] = useState<By>("day");
  const [days, setDays] = useState("30");
  const [measure, setMeasure] = useState<Measure>("cost");
  const since = new Date(Date.now() - Number(days) * DAY).toISOString().slice(0, 10);
  const report = useQuery(useCallback(() => get<Report>("/api/usage", { by, since }), [by, since]));
  const daily = useQuery(
    useCallback(() => get<Report>("/api/usage", { by: "day", since: monthAgo() }), []),
  );
  const rows = report.value?.rows ?? [];
  const value = (row: Row): number =>
    measure === "cost" ? (row.used.cost_usd ?? 0) : all(row.used);
  const most = Math.max(1e-9, ...rows.map(value));
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title}>
        <div className={styles.choices}>
          <Choice label={words.groupBy} value={by} options={words.by} onChange={setBy} />
          <Choice label={words.period} value={days} options={words.periods} onChange={setDays} />
          <Choice
            label={words.measure}
            value={measure}
            options={words.measures}
            onChange={setMeasure}
          />
        </div>
      </PageHead>
      <ErrorText error={report.error} />
      <Spent />
      {report.value && <Totals total={report.value.total} daily={daily.value?.rows ?? []} />}
      {report.value && <Limits limits={report.value.limits} />}
      {rows.length > 0 && by === "day" && (
        <Chart rows={rows} since={since} value={value} most={most} measure={measure} />
      )}
      {rows.length > 0 && <Rows rows={rows} by={by} value={value} most={most} />}
      {!rows.length && !report.loading && !report.error && (
        <Empty icon={ChartColumn} title={words.none}>
          {words.noneHint}
        </Empty>
      )}
    </div>
  );
}

const monthAgo = (): string => new Date(Date.now() - 31 * DAY).toISOString().slice(0, 10);

function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: Record<T, string>;
  onChange: (value: T) => void;
}) {
  return (
    <select
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.onChange(event.target.value as T)}
    >
      {Object.entries<string>(props.options).map(([key, word]) => (
        <option key={key} value={key}>
          {word}
        </option>
      ))}
    </select>
  );
}

/** Sessions that a budget has stopped, with what lets them continue. */
function Spent() {
  const sessions = useAppState((state) => state.sessions);
  const manage = useRights().includes("manage");
  const [raising, setRaising] = useState<Session>();
  const stopped = [...sessions.values()].filter((session) => session.budgets.length > 0);
  if (!stopped.length) return null;
  return (
    <section className={css.card.card} aria-label={words.budgets}>
      <h2>{words.budgets}</h2>
      <ul className={styles.spent}>
        {stopped.map((session) => (
          <li key={session.session}>
            <Link href={`/s/${encodeURIComponent(session.session)}`}>
              <Marked text={nameOf(session)} />
            </Link>
            <span className={css.texts.muted}>{cost(session.cost_usd)}</span>
            {manage && (
              <button
                type="button"
                className={css.button.small}
                onClick={() => setRaising(session)}
              >
                {words.raise}
              </button>
            )}
          </li>
        ))}
      </ul>
      {raising && (
        <Dialog title={words.budget} size="s" onClose={() => setRaising(undefined)}>
          <BudgetForm session={raising} onDone={() => setRaising(undefined)} />
        </Dialog>
      )}
    </section>
  );
}

function Totals({ total, daily }: { total: Used; daily: readonly Row[] }) {
  const byDay = new Map(daily.map((row) => [row.key, row.used.cost_usd ?? 0]));
  const read = total.cache_read ?? 0;
  const input = (total.input ?? 0) + read + (total.cache_write ?? 0);
  return (
    <dl className={styles.totals} aria-label={words.totals}>
      <Figure
        name={words.cost}
        value={cost(total.cost_usd ?? 0)}
        hint={total.estimated_usd ? words.ofWhichEstimated(cost(total.estimated_usd)) : ""}
      />
      <Figure
        name={words.tokens}
        value={tokens(all(total))}
        hint={input > 0 ? words.cached(read / input) : ""}
      />
      <Figure
        name={words.turns}
        value={String(total.turns ?? 0)}
        hint={total.failed ? words.failed(total.failed) : ""}
      />
      <Figure name={words.toolCalls} value={String(total.tool_calls ?? 0)} hint="" />
      <Figure
        name={words.waiting}
        value={total.waiting_ms ? duration(total.waiting_ms) : "–"}
        hint={total.asks ? words.questions(total.asks) : ""}
      />
      <Figure
        name={words.forecast}
        value={cost(monthForecast(byDay, today()))}
        hint={words.forecastHint(cost(pace(byDay, today())))}
      />
    </dl>
  );
}

function Figure({ name, value, hint }: { name: string; value: string; hint: string }) {
  return (
    <div className={styles.figure}>
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        {hint && <span className={css.texts.muted}>{hint}</span>}
      </dd>
    </div>
  );
}

/** What is left of the account's limits, and when they end. */
function Limits({ limits }: { limits: readonly Limit[] }) {
  return (
    <section className={css.card.card} aria-label={words.limits}>
      <h2>{words.limits}</h2>
      {!limits.length && <p className={css.texts.muted}>{words.noLimits}</p>}
      <ul className={styles.limits}>
        {limits.map((limit) => (
          <LimitRow key={`${limit.machine}/${limit.limit}`} limit={limit} />
        ))}
      </ul>
    </section>
  );
}

function LimitRow({ limit }: { limit: Limit }) {
  const used = Math.min(1, Math.max(0, limit.used ?? (limit.status === "rejected" ? 1 : 0)));
  const reached = limitReached(limit);
  const percent = Math.round(used * 100);
  const state =
    limit.status === "rejected"
      ? words.limitReached
      : limit.used == null
        ? words.limitAllowed
        : words.limitUsed(percent);
  const facts = [
    limit.machine && limit.machine !== "local" ? words.onMachine(limit.machine) : "",
    limit.resets_at ? words.resets(moment(limit.resets_at)) : "",
    reached ? words.reachedAt(moment(reached)) : "",
    words.reported(ago(limit.at, Date.now())),
  ];
  return (
    <li data-tone={limit.status === "rejected" ? "bad" : used > 0.8 || reached ? "wait" : "good"}>
      <p>
        <strong>{lookup(words.limitNames, limit.limit) ?? (limit.limit || words.someLimit)}</strong>{" "}
        {state}
      </p>
      <span className={styles.meter} aria-hidden="true">
        <span style={{ width: `${percent}%` }} />
      </span>
      <p className={css.texts.muted}>{facts.filter(Boolean).join(" · ")}</p>
    </li>
  );
}

function Rows(props: { rows: readonly Row[]; by: By; value: (row: Row) => number; most: number }) {
  const sessions = useAppState((state) => state.sessions);
  const named = (key: string): string => {
    const session = props.by === "session" ? sessions.get(key) : undefined;
    return session ? nameOf(session) : key || "–";
  };
  const heads = [words.by[props.by], ...Object.values(words.heads)];
  return (
    <div className={css.table.wrap} data-scrolls="" tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={head} className={index ? css.texts.number : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={row.key}>
              <td>
                <Marked text={named(row.key)} />
                <span
                  className={styles.bar}
                  style={{ width: `${(props.value(row) / props.most) * 100}%` }}
                  aria-hidden="true"
                />
              </td>
              <td className={css.texts.number}>{cost(row.used.cost_usd ?? 0)}</td>
              <td className={css.texts.number}>{tokens(all(row.used))}</td>
              <td className={css.texts.number}>{row.used.turns}</td>
              <td className={css.texts.number}>{row.used.tool_calls}</td>
              <td className={css.texts.number}>
                {row.used.waiting_ms ? duration(row.used.waiting_ms) : "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
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
  measure: Measure;
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
        <span>{words.highest}</span>
      </figcaption>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={words.chart(words.measures[props.measure])}
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
              <title>{words.onDay(day, format(value))}</title>
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
