import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { askTitle } from "../asks/request";
import { doingOf } from "../state/doing";
import { folderOf, nameOf } from "../state/sessions";
import { store, useAppState, useRights } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { takeFocus } from "../ui/focus";
import { cost } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { SessionBadge } from "../ui/StateBadge";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import { useMenu } from "../ui/useMenu";
import { StopDialog } from "./StopDialog";
import { type SandboxState, sandboxDetails, sandboxLabel } from "./sandbox";
import styles from "./sessionHeader.module.css";

/** A session's name, place and state, and what can be done with it. */
export function SessionHeader(props: { session: Session; panel: boolean; onPanel: () => void }) {
  const { session: id, archived, run } = props.session;
  const [renaming, setRenaming] = useState(false);
  const [stopping, setStopping] = useState(false);
  const [, go] = useLocation();
  const action = useAction();
  const more = useMenu();
  useEscape(renaming, () => setRenaming(false));
  const rights = useRights();
  const steer = rights.includes("steer");
  const manage = rights.includes("manage");
  const ask = useAppState((state) => [...state.asks.values()].find((one) => one.session === id));
  // The hub names a question by its tool; its own words say more.
  const hint = doingOf(props.session, false).hint ?? "";
  const detail = ask ? askTitle(ask.opened) : props.session.detail || hint;
  const choose = (does: () => void): (() => void) => {
    return () => {
      more.close();
      does();
    };
  };
  const rename = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
    if (name)
      void action.run(() => store.command({ command: "session.rename", session: id, name }));
    setRenaming(false);
  };
  const resume = (): void =>
    void action.run(() => store.command({ command: "session.resume", session: id }));
  const stop = (): void =>
    void action.run(() => store.command({ command: "session.stop", session: id }));
  const archive = (): void =>
    void action.run(() =>
      store.command({ command: "session.archive", session: id, archived: !archived }),
    );
  const fork = (): void =>
    void action.run(async () => {
      const made = await store.command({ command: "session.fork", session: id });
      go(`/s/${encodeURIComponent(made.session)}`);
    });
  const remove = (): void => {
    if (!confirm("Delete this session and its whole history?")) return;
    void action.run(async () => {
      await store.command({ command: "session.delete", session: id });
      go("/");
    });
  };
  return (
    <header className={styles.bar}>
      <Link href="/" className={styles.back} aria-label="Back to sessions">
        ‹
      </Link>
      <div className={styles.titles}>
        {renaming ? (
          <form onSubmit={rename}>
            <input
              ref={takeFocus}
              name="name"
              aria-label="Name"
              defaultValue={nameOf(props.session)}
            />
            <button type="submit" className="small">
              Save
            </button>
          </form>
        ) : (
          <h1>
            <Marked text={nameOf(props.session)} />
          </h1>
        )}
        <p className={styles.where}>
          <span className="path" title={withMarks(folderOf(props.session))}>
            <Marked text={folderOf(props.session)} code />
          </span>
          {props.session.version && <span> · Claude Code {props.session.version}</span>}
          {props.session.run !== null && <Shield state={props.session.sandbox} />}
          {props.session.cost_usd > 0 && <span> · {cost(props.session.cost_usd)}</span>}
        </p>
      </div>
      <div className={styles.state}>
        <SessionBadge session={props.session} />
        {detail && (
          <span className="muted">
            <Marked text={detail} />
          </span>
        )}
      </div>
      <div className="buttons">
        {steer && run === null && (
          <button type="button" className="small" onClick={resume}>
            Resume
          </button>
        )}
        {steer && run !== null && (
          <button
            type="button"
            className="small"
            title="End the agent's process; the session can be resumed"
            onClick={() => setStopping(true)}
          >
            Stop<span className="wide"> agent</span>
          </button>
        )}
        <details className={styles.more} ref={more.place} onToggle={more.toggled}>
          <summary className="button small" aria-label="More">
            ⋯
          </summary>
          <div className="menu">
            {steer && (
              <button type="button" onClick={choose(() => setRenaming(true))}>
                Rename
              </button>
            )}
            {manage && (
              <button type="button" onClick={choose(fork)}>
                Fork
              </button>
            )}
            {steer && (
              <button type="button" onClick={choose(archive)}>
                {archived ? "Unarchive" : "Archive"}
              </button>
            )}
            {manage && run === null && (
              <button type="button" onClick={remove}>
                Delete …
              </button>
            )}
          </div>
        </details>
        <button type="button" className="small" aria-pressed={props.panel} onClick={props.onPanel}>
          Panels
        </button>
      </div>
      <ErrorText error={action.error} />
      {stopping && run !== null && (
        <StopDialog session={props.session} onStop={stop} onClose={() => setStopping(false)} />
      )}
    </header>
  );
}

/** The sandbox of the run: a small shield with text. */
function Shield({ state }: { state: SandboxState | undefined }) {
  return (
    <span
      className={styles.shield}
      data-mode={state?.mode ?? "off"}
      title={withMarks(sandboxDetails(state))}
    >
      <span className={styles.dot}> · </span>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d="M8 1 2 3v5c0 3.5 2.6 6 6 7 3.4-1 6-3.5 6-7V3Z" />
      </svg>{" "}
      {sandboxLabel(state)}
    </span>
  );
}
