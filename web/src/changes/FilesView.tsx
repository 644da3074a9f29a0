import {
  ChevronRight,
  File,
  FileSymlink,
  Folder,
  Search,
  SquareArrowOutUpRight,
} from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { get, sessionPath } from "../api/http";
import { useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon, type LucideIcon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { Select } from "../ui/Select";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import { DiffView } from "./DiffView";
import { EDITORS, type Editor, editor, editorLink, setEditor } from "./editors";
import { asPatch } from "./patch";
import type { Entries, Found, SeenFile } from "./types";

const words = text.changes;
const ICONS: Record<string, LucideIcon> = { folder: Folder, link: FileSymlink };

/** The files of a session's folder, to be read: a tree, a search, and one file. */
export function FilesView(props: {
  session: string;
  folder: string;
  chosen: string | undefined;
  onChoose: (path: string | undefined) => void;
}) {
  const { session } = props;
  const [search, setSearch] = useState({ text: "", contents: false });
  const [typed, setTyped] = useState("");
  // A link in the agent's text may name a line.
  const [line, setLine] = useState(
    () => Number(new URLSearchParams(location.search).get("line")) || 0,
  );
  const open = (path: string, at = 0): void => {
    setLine(at);
    props.onChoose(path);
  };
  const choose = (contents: boolean): void => setSearch({ text: typed.trim(), contents });
  return (
    <div className={styles.review} data-file={props.chosen !== undefined || undefined}>
      <nav className={styles.list} aria-label={words.files}>
        <form
          className={styles.search}
          onSubmit={(event) => {
            event.preventDefault();
            choose(search.contents);
          }}
        >
          <input
            type="search"
            aria-label={words.search}
            placeholder={words.search}
            value={typed}
            onChange={(event) => {
              setTyped(event.target.value);
              if (!event.target.value) setSearch({ ...search, text: "" });
            }}
          />
          <button type="submit" className={css.button.small} aria-label={words.searchIn}>
            <Icon of={Search} />
          </button>
          <Select
            label={words.searchIn}
            className={css.button.small}
            value={search.contents ? "contents" : "names"}
            options={[
              { value: "names", label: words.searchNames },
              { value: "contents", label: words.searchContents },
            ]}
            onChange={(value) => choose(value === "contents")}
          />
        </form>
        <div className={styles.scroll}>
          {search.text ? (
            <Results
              session={session}
              text={search.text}
              contents={search.contents}
              onChoose={open}
            />
          ) : (
            <Level session={session} path="" chosen={props.chosen} onChoose={open} />
          )}
        </div>
      </nav>
      {props.chosen === undefined ? (
        <p className={`${css.texts.muted} ${styles.choose}`}>{words.chooseView}</p>
      ) : (
        <Viewer
          key={props.chosen}
          session={session}
          folder={props.folder}
          path={props.chosen}
          line={line}
          onBack={() => props.onChoose(undefined)}
        />
      )}
    </div>
  );
}

interface LevelProps {
  session: string;
  path: string;
  chosen: string | undefined;
  onChoose: (path: string) => void;
}

/** What is in one folder; folders in it are read when they are opened. */
function Level({ session, path, chosen, onChoose }: LevelProps) {
  const found = useQuery(
    useCallback(() => get<Entries>(sessionPath(session, "/files"), { path }), [session, path]),
  );
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (name: string): void => {
    const next = new Set(open);
    if (!next.delete(name)) next.add(name);
    setOpen(next);
  };
  return (
    <>
      <ErrorText error={found.error} />
      <ul className={styles.tree}>
        {(found.value?.entries ?? []).map(({ name, kind }) => {
          const whole = path ? `${path}/${name}` : name;
          const folder = kind === "folder";
          return (
            <li key={name}>
              <button
                type="button"
                className={styles.entry}
                aria-expanded={folder ? open.has(name) : undefined}
                aria-current={whole === chosen ? "true" : undefined}
                disabled={kind === "other"}
                onClick={() => (folder ? toggle(name) : onChoose(whole))}
              >
                {folder && (
                  <span className={styles.chevron}>
                    <Icon of={ChevronRight} size={14} />
                  </span>
                )}
                <Icon of={ICONS[kind] ?? File} size={14} />
                <Marked text={name} code />
              </button>
              {folder && open.has(name) && (
                <Level session={session} path={whole} chosen={chosen} onChoose={onChoose} />
              )}
            </li>
          );
        })}
      </ul>
      {(found.value?.left_out ?? 0) > 0 && (
        <p className={css.texts.muted}>{words.moreEntries(found.value?.left_out ?? 0)}</p>
      )}
    </>
  );
}

function Results(props: {
  session: string;
  text: string;
  contents: boolean;
  onChoose: (path: string, line: number) => void;
}) {
  const { session, text: wanted, contents } = props;
  const found = useQuery(
    useCallback(
      () => get<Found>(sessionPath(session, "/files/search"), { text: wanted, contents }),
      [session, wanted, contents],
    ),
  );
  const matches = found.value?.matches ?? [];
  return (
    <>
      <ErrorText error={found.error} />
      {found.value && !matches.length && <p className={css.texts.muted}>{words.nothingFound}</p>}
      <ul className={styles.tree}>
        {matches.map((match) => (
          <li key={`${match.path}:${match.line}`}>
            <button
              type="button"
              className={`${styles.entry} ${styles.hit}`}
              onClick={() => props.onChoose(match.path, match.line ?? 0)}
            >
              <span>
                <Marked text={match.path} code />
                {match.line ? `:${match.line}` : ""}
              </span>
              {match.text && (
                <span className={styles.hitText}>
                  <Marked text={match.text.trim()} code />
                </span>
              )}
            </button>
          </li>
        ))}
      </ul>
      {found.value?.cut && <p className={css.texts.muted}>{words.moreFound}</p>}
    </>
  );
}

/** A file like a diff without changes: only the lines in sight are rendered, and each can be commented. */
function FileContent(props: { session: string; path: string; content: string; line: number }) {
  const { session, path, content, line } = props;
  const steer = useRights().includes("steer");
  const diff = useMemo(
    () => ({ directory: "", path, patch: asPatch(content), whole: true }),
    [path, content],
  );
  const all = useMemo(() => ({ line }), [line]);
  return <DiffView session={session} diff={diff} layout="unified" comments={steer} all={all} />;
}

function Viewer(props: {
  session: string;
  folder: string;
  path: string;
  line: number;
  onBack: () => void;
}) {
  const { session, path } = props;
  const [chosen, setChosen] = useState<Editor>(editor());
  const file = useQuery(
    useCallback(
      () => get<SeenFile>(sessionPath(session, "/files/content"), { path }),
      [session, path],
    ),
  );
  const link = editorLink(chosen, `${props.folder}/${path}`, props.line || 1);
  const seen = file.value;
  return (
    <section className={styles.pane} aria-label={path}>
      <header className={styles.paneHead}>
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small} ${styles.toList}`}
          onClick={props.onBack}
        >
          {words.toList}
        </button>
        <h2>
          <Marked text={path} code />
        </h2>
        <span className={css.layout.spread} />
        <Select
          label={words.editor}
          className={`${css.button.small} ${css.button.ghost}`}
          value={chosen}
          options={EDITORS.map((one) => ({ value: one, label: words.editors[one] }))}
          onChange={(value) => {
            setEditor(value);
            setChosen(value);
          }}
        />
        {link && (
          <a className={`${css.button.button} ${css.button.small}`} href={link}>
            <Icon of={SquareArrowOutUpRight} />
            {words.openInEditor}
          </a>
        )}
      </header>
      <ErrorText error={file.error} />
      {seen && seen.state !== "text" && !file.error && (
        <p className={css.note.note}>{words.states[seen.state] ?? seen.state}</p>
      )}
      {seen?.state === "text" && !file.error && (
        <FileContent
          key={path}
          session={session}
          path={path}
          content={seen.text ?? ""}
          line={props.line}
        />
      )}
    </section>
  );
}
