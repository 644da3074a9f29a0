import { Info, Search } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { askTitle } from "../asks/request";
import { doingOf } from "../state/doing";
import { nameOf } from "../state/sessions";
import { store, useAppState, useRights } from "../state/store";
import { text } from "../text";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { takeFocus } from "../ui/focus";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { SessionBadge } from "../ui/StateBadge";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import { NARROW, useMedia } from "../ui/useMedia";
import { useMenu } from "../ui/useMenu";
import { type Fact, useFacts } from "./head/Facts";
import heads from "./head/head.module.css";
import { ShareDialog } from "./ShareDialog";
import { StopDialog } from "./StopDialog";
import styles from "./sessionHeader.module.css";

/** A session's name, place and state, and what can be done with it. */
export function SessionHeader(props: {
  session: Session;
  panel: boolean;
  /** Opens a panel by its name; without a name, opens or closes the panels. */
  onPanel: (name?: string) => void;
  onFind: () => void;
}) {
  const { session: id, archived, run } = props.session;
  const [renaming, setRenaming] = useState(false);
  const [stopping, setStopping] = useState(false);
  const [sharing, setSharing] = useState(false);
  const [, go] = useLocation();
  const action = useAction();
  const more = useMenu();
  const facts = useFacts(props.session, props.onPanel);
  const narrow = useMedia(NARROW);
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
      <Link href="/" className={styles.back} aria-label={text.session.back}>
        ‹
      </Link>
      <div className={styles.titles}>
        {renaming ? (
          <form onSubmit={rename}>
            <input
              ref={takeFocus}
              name="name"
              aria-label={text.session.name}
              defaultValue={nameOf(props.session)}
            />
            <button type="submit" className="small">
              {text.session.save}
            </button>
          </form>
        ) : (
          <h1>
            <Marked text={nameOf(props.session)} />
          </h1>
        )}
        {!narrow && (
          <div className={heads.chips}>
            {facts.map((fact) => (
              <span key={fact.name} data-fact={fact.name}>
                {fact.node}
              </span>
            ))}
          </div>
        )}
      </div>
      <div className={styles.state}>
        <SessionBadge session={props.session} />
        {narrow && facts.find((fact) => fact.name === "sandbox")?.node}
        {detail && (
          <span className="muted">
            <Marked text={detail} />
          </span>
        )}
      </div>
      <div className="buttons">
        {narrow && <Details facts={facts} />}
        <button
          type="button"
          className="small ghost"
          title={text.story.find.open}
          aria-label={text.story.find.open}
          onClick={props.onFind}
        >
          <Icon of={Search} />
        </button>
        {steer && run === null && (
          <button type="button" className="small" onClick={resume}>
            {text.session.resume}
          </button>
        )}
        {steer && run !== null && (
          <button
            type="button"
            className="small"
            title={text.session.stopHint}
            onClick={() => setStopping(true)}
          >
            {text.session.stop}
            <span className="wide">{text.session.stopAgent}</span>
          </button>
        )}
        <details className={styles.more} ref={more.place} onToggle={more.toggled}>
          <summary className="button small" aria-label={text.session.more}>
            ⋯
          </summary>
          <div className="menu">
            {steer && (
              <button type="button" onClick={choose(() => setRenaming(true))}>
                {text.session.rename}
              </button>
            )}
            {manage && (
              <button type="button" onClick={choose(fork)}>
                {text.session.fork}
              </button>
            )}
            {manage && (
              <button type="button" onClick={choose(() => setSharing(true))}>
                {text.settings.share}
              </button>
            )}
            {steer && (
              <button type="button" onClick={choose(archive)}>
                {archived ? text.session.unarchive : text.session.archive}
              </button>
            )}
            {manage && run === null && (
              <button type="button" onClick={remove}>
                {text.session.delete}
              </button>
            )}
          </div>
        </details>
        <button
          type="button"
          className="small"
          aria-pressed={props.panel}
          onClick={() => props.onPanel()}
        >
          {text.session.panels}
        </button>
      </div>
      <ErrorText error={action.error} />
      {sharing && <ShareDialog session={id} onClose={() => setSharing(false)} />}
      {stopping && run !== null && (
        <StopDialog session={props.session} onStop={stop} onClose={() => setStopping(false)} />
      )}
    </header>
  );
}

/** On a small screen: all that holds for the session, in a sheet. */
function Details({ facts }: { facts: readonly Fact[] }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        className="small ghost"
        title={text.session.details}
        aria-label={text.session.details}
        onClick={() => setOpen(true)}
      >
        <Icon of={Info} />
      </button>
      {open && (
        <Dialog title={text.session.details} onClose={() => setOpen(false)}>
          <dl className={heads.sheet}>
            {facts.map((fact) => (
              <div key={fact.name} data-fact={fact.name} style={{ display: "contents" }}>
                <dt>{fact.label}</dt>
                <dd>{fact.node}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}
