import {
  Archive,
  ArchiveRestore,
  Braces,
  ChevronLeft,
  Ellipsis,
  FolderGit2,
  GitCompareArrows,
  GitFork,
  Info,
  PanelBottom,
  Pencil,
  Search,
  Server,
  Share2,
  Trash2,
} from "lucide-react";
import { type FormEvent, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Session } from "../api/types";
import { askTitle } from "../asks/request";
import { ForkDialog, forksOf } from "../rewind/ForkDialog";
import { activityOf } from "../state/activity";
import { detailOf } from "../state/coded";
import { nameOf } from "../state/sessions";
import { store, useAppState, useRights } from "../state/store";
import { text } from "../text";
import { Confirm } from "../ui/Confirm";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { openerNow, takeFocus } from "../ui/focus";
import { Icon } from "../ui/Icon";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { withMarks } from "../ui/marks";
import { SessionBadge } from "../ui/StateBadge";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import { NARROW, useMedia } from "../ui/useMedia";
import { type HeaderDetail, useFacts } from "./head/Facts";
import heads from "./head/head.module.css";
import { canMove, MoveDialog } from "./MoveDialog";
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
  const [removing, setRemoving] = useState(false);
  const [moving, setMoving] = useState(false);
  const [details, setDetails] = useState(false);
  const [, go] = useLocation();
  const action = useAction();
  const facts = useFacts(props.session, props.onPanel);
  const narrow = useMedia(NARROW);
  const opener = useRef<HTMLElement>(null);
  const beginRename = (): void => {
    opener.current = openerNow();
    setRenaming(true);
  };
  const endRename = (): void => {
    setRenaming(false);
    opener.current?.focus();
  };
  useEscape(renaming, endRename);
  const rights = useRights();
  const [forking, setForking] = useState(false);
  const forks = useAppState((state) => forksOf(state.sessions, id));
  const steer = rights.includes("steer");
  const manage = rights.includes("manage");
  const ask = useAppState((state) => [...state.asks.values()].find((one) => one.session === id));
  // The hub names a question by its tool; its own words say more.
  const hint = activityOf(props.session, false).hint ?? "";
  const detail = ask ? askTitle(ask.opened) : detailOf(props.session) || hint;
  const rename = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
    if (name)
      void action.run(() => store.command({ command: "session.rename", session: id, name }));
    endRename();
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
  const remove = (): void =>
    void action.run(async () => {
      await store.command({ command: "session.delete", session: id });
      go("/");
    });
  return (
    <header className={styles.bar}>
      <Link href="/" className={styles.back} aria-label={text.session.back}>
        <Icon of={ChevronLeft} size={20} />
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
            <button type="submit" className={css.button.small}>
              {text.session.save}
            </button>
          </form>
        ) : (
          <h1 title={withMarks(nameOf(props.session))}>
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
          <span className={`${css.texts.muted} ${styles.detail}`} title={withMarks(detail)}>
            <Marked text={detail} />
          </span>
        )}
      </div>
      <div className={`${css.layout.buttons} ${styles.buttons}`}>
        {!narrow && (
          <IconButton
            icon={Search}
            label={text.story.find.open}
            className={`${css.button.small} ${css.button.ghost}`}
            onClick={props.onFind}
          />
        )}
        {steer && run === null && (
          <button type="button" className={css.button.small} onClick={resume}>
            {text.session.resume}
          </button>
        )}
        {steer && run !== null && (
          <button
            type="button"
            className={css.button.small}
            title={text.session.stopHint}
            onClick={() => setStopping(true)}
          >
            {text.session.stop}
            <span className={css.layout.wide}>{text.session.stopAgent}</span>
          </button>
        )}
        <Menu
          label={text.session.more}
          trigger={<Icon of={Ellipsis} />}
          triggerClass={`${css.button.button} ${css.button.small}`}
        >
          {narrow && (
            <>
              <MenuItem icon={Info} onSelect={() => setDetails(true)}>
                {text.session.details}
              </MenuItem>
              <MenuItem icon={Search} onSelect={props.onFind}>
                {text.story.find.open}
              </MenuItem>
              <MenuLine />
            </>
          )}
          {steer && (
            <MenuItem icon={Pencil} onSelect={beginRename}>
              {text.session.rename}
            </MenuItem>
          )}
          {manage && (
            <MenuItem icon={GitFork} onSelect={fork}>
              {text.session.fork}
            </MenuItem>
          )}
          {manage && (
            <MenuItem icon={FolderGit2} onSelect={() => setForking(true)}>
              {text.rewind.own}
            </MenuItem>
          )}
          {manage && canMove(props.session) && (
            <MenuItem icon={Server} onSelect={() => setMoving(true)}>
              {text.session.move.open}
            </MenuItem>
          )}
          <MenuItem
            icon={GitCompareArrows}
            onSelect={() => go(`/compare?s=${encodeURIComponent(id)}`)}
          >
            {text.session.compare}
          </MenuItem>
          {manage && (
            <MenuItem icon={Share2} onSelect={() => setSharing(true)}>
              {text.settings.share}
            </MenuItem>
          )}
          <MenuItem icon={Braces} onSelect={() => props.onPanel("raw")}>
            {text.session.rawEvents}
          </MenuItem>
          {steer && (
            <MenuItem icon={archived ? ArchiveRestore : Archive} onSelect={archive}>
              {archived ? text.session.unarchive : text.session.archive}
            </MenuItem>
          )}
          {manage && run === null && (
            <MenuItem icon={Trash2} danger onSelect={() => setRemoving(true)}>
              {text.session.delete}
            </MenuItem>
          )}
        </Menu>
        <button
          type="button"
          className={css.button.small}
          aria-pressed={props.panel}
          aria-label={text.session.panels}
          onClick={() => props.onPanel()}
        >
          {narrow ? <Icon of={PanelBottom} /> : text.session.panels}
        </button>
      </div>
      <ErrorText error={action.error} className={styles.error} />
      {details && <Details facts={facts} onClose={() => setDetails(false)} />}
      {forking && (
        <ForkDialog session={props.session} forks={forks} onClose={() => setForking(false)} />
      )}
      {moving && <MoveDialog session={props.session} onClose={() => setMoving(false)} />}
      {sharing && <ShareDialog session={id} onClose={() => setSharing(false)} />}
      {removing && (
        <Confirm
          title={text.session.deleteTitle}
          verb={text.session.deleteNow}
          onConfirm={remove}
          onClose={() => setRemoving(false)}
        >
          <p>{text.session.deleteText(nameOf(props.session))}</p>
        </Confirm>
      )}
      {stopping && run !== null && (
        <StopDialog session={props.session} onStop={stop} onClose={() => setStopping(false)} />
      )}
    </header>
  );
}

/** On a small screen: all that holds for the session, in a sheet. */
function Details({ facts, onClose }: { facts: readonly HeaderDetail[]; onClose: () => void }) {
  return (
    <Dialog title={text.session.details} onClose={onClose}>
      <dl className={heads.sheet}>
        {facts.map((fact) => (
          <div key={fact.name} data-fact={fact.name} style={{ display: "contents" }}>
            <dt>{fact.label}</dt>
            <dd>{fact.node}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
