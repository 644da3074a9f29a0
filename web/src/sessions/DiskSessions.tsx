import { useCallback, useState } from "react";
import { useLocation } from "wouter";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import type { Machine } from "../api/types";
import { store, useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { ago, newId } from "../ui/format";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { useNow } from "../ui/useNow";
import { useQuery } from "../ui/useQuery";
import styles from "./newSession.module.css";
import { LOCAL } from "./newSessionSpec";

type Schemas = components["schemas"];
type OnDisk = Schemas["CliSessionOnDisk"];

const words = text.newSession;
const REPORTED = new Set(["new", "more"]);

/** The conversations that the CLI has on a machine's disk: to import or to continue. */
export function DiskSessions({ onClose }: { onClose: () => void }) {
  const [machine, setMachine] = useState(LOCAL);
  const [filter, setFilter] = useState("");
  const [note, setNote] = useState("");
  const [, go] = useLocation();
  const sessions = useAppState((state) => state.sessions);
  const action = useAction();
  const machines = useQuery(useCallback(() => get<{ machines: Machine[] }>("/api/machines"), []));
  const found = useQuery(
    useCallback(
      () =>
        get<Schemas["CliSessionsOnDisk"]>(`/api/machines/${encodeURIComponent(machine)}/sessions`, {
          limit: 200,
        }),
      [machine],
    ),
  );
  const known = new Map(
    [...sessions.values()].flatMap((one) => (one.cli_session ? [[one.cli_session, one]] : [])),
  );
  const wanted = filter.trim().toLowerCase();
  const shown = (found.value?.sessions ?? []).filter((one) =>
    `${one.title} ${one.directory} ${one.branch}`.toLowerCase().includes(wanted),
  );
  const show = (session: string): void => {
    onClose();
    go(`/s/${encodeURIComponent(session)}`);
  };
  const bring = (only: string[], resume = false): void =>
    void action.run(async () => {
      const report = await post<Schemas["ImportReport"]>("/api/import", { sessions: only });
      const first = report.sessions.find((one) => one.session);
      if (only.length === 1) {
        if (!first?.session) throw new Error(report.sessions[0]?.detail ?? words.noDisk);
        if (resume) await store.command({ command: "session.resume", session: first.session });
        show(first.session);
        return;
      }
      const count = report.sessions.filter((one) => REPORTED.has(one.outcome)).length;
      setNote(words.imported(count));
    });
  /** On another machine the hub cannot read the past; the CLI there still has it. */
  const continueThere = (one: OnDisk): void =>
    void action.run(async () => {
      const session = newId();
      await store.command({
        command: "session.create",
        session,
        spec: { directory: one.directory, machine, name: one.title.slice(0, 100) },
        cli_session: one.cli_session,
      });
      show(session);
    });
  const names = [LOCAL, ...(machines.value?.machines ?? []).map((one) => one.name)];
  return (
    <div className={styles.form}>
      <p className={css.texts.muted}>{words.diskHint}</p>
      <div className={styles.diskTools}>
        <label className={css.field.field}>
          <span>{words.machine}</span>
          <select value={machine} onChange={(event) => setMachine(event.target.value)}>
            {[...new Set(names)].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label className={css.field.field}>
          <span>{words.filter}</span>
          <input type="search" value={filter} onChange={(event) => setFilter(event.target.value)} />
        </label>
        {machine === LOCAL && shown.length > 1 && (
          <button
            type="button"
            disabled={action.busy}
            onClick={() => bring(shown.map((one) => one.cli_session))}
          >
            {words.importAll}
          </button>
        )}
      </div>
      <ErrorText error={found.error || action.error} />
      {note && <p role="status">{note}</p>}
      <ul className={styles.disk} aria-label={words.conversations} aria-busy={found.loading}>
        {shown.map((one) => {
          const here = known.get(one.cli_session);
          return (
            <Row
              key={one.cli_session}
              one={one}
              here={here !== undefined}
              busy={action.busy}
              local={machine === LOCAL}
              onImport={() => (here ? show(here.session) : bring([one.cli_session]))}
              onContinue={() => {
                if (machine === LOCAL) bring([one.cli_session], true);
                else continueThere(one);
              }}
            />
          );
        })}
        {!shown.length && !found.loading && !found.error && (
          <li className={css.texts.muted}>{words.noDisk}</li>
        )}
      </ul>
      {found.value?.more && <p className={css.texts.muted}>{words.moreOnDisk}</p>}
    </div>
  );
}

function Row(props: {
  one: OnDisk;
  here: boolean;
  local: boolean;
  busy: boolean;
  onImport: () => void;
  onContinue: () => void;
}) {
  const { one } = props;
  const now = useNow();
  return (
    <li>
      <span className={styles.diskText}>
        <strong>
          <Marked text={one.title} />
        </strong>
        <span className={css.texts.muted}>
          {one.directory ? <Marked text={one.directory} /> : words.noDirectory}
          {one.branch && ` · ${one.branch}`} · {ago(one.updated, now)}
        </span>
      </span>
      <span className={css.layout.buttons}>
        {(props.local || props.here) && (
          <button type="button" disabled={props.busy} onClick={props.onImport}>
            {props.here ? words.known : words.importIt}
          </button>
        )}
        {!props.here && (
          <button
            type="button"
            className={css.button.primary}
            disabled={props.busy || !one.directory}
            onClick={props.onContinue}
          >
            {words.continueIt}
          </button>
        )}
      </span>
    </li>
  );
}
