import { ChevronLeft } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { Link } from "wouter";
import { get, sessionPath } from "../api/http";
import type { Session } from "../api/types";
import { DiffView } from "../changes/DiffView";
import { Counts } from "../changes/FileList";
import type { Changes, FileChange, FileDiff } from "../changes/types";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { useQuery } from "../ui/useQuery";
import styles from "./rewind.module.css";

const words = text.rewind;

interface Both {
  path: string;
  one: FileChange | undefined;
  other: FileChange | undefined;
}

/** The files of two sessions' changes, each once. */
export function mergedFiles(one: readonly FileChange[], other: readonly FileChange[]): Both[] {
  const found = new Map<string, Both>();
  for (const file of one) found.set(file.path, { path: file.path, one: file, other: undefined });
  for (const file of other) {
    const known = found.get(file.path);
    found.set(file.path, { path: file.path, one: known?.one, other: file });
  }
  return [...found.values()].sort((a, b) => a.path.localeCompare(b.path));
}

/** The changes of two sessions beside each other. */
export default function ComparePage({ one, other }: { one: string; other: string }) {
  const first = useAppState((state) => state.sessions.get(one));
  const second = useAppState((state) => state.sessions.get(other));
  const listed = useAppState((state) => state.listed);
  if (!first || !second) {
    return <p className={css.empty.page}>{listed ? words.missing : text.changes.loading}</p>;
  }
  return <Compare one={first} other={second} />;
}

const useChanges = (id: string) =>
  useQuery(useCallback(() => get<Changes>(sessionPath(id, "/diff"), { text_limit: 0 }), [id]));

function Compare({ one, other }: { one: Session; other: Session }) {
  const [left, right] = [useChanges(one.session), useChanges(other.session)];
  const [chosen, setChosen] = useState<string>();
  const files = useMemo(
    () => mergedFiles(left.value?.files ?? [], right.value?.files ?? []),
    [left.value, right.value],
  );
  const file = files.find(({ path }) => path === chosen) ?? files[0];
  const names = twoNames(nameOf(one), nameOf(other));
  const same = left.value !== undefined && left.value.directory === right.value?.directory;
  return (
    <div className={styles.compare}>
      <header className={styles.compareHead}>
        <Link
          href={`/s/${encodeURIComponent(one.session)}`}
          className={`${css.button.button} ${css.button.ghost} ${css.button.small} ${css.button.iconButton}`}
          aria-label={text.changes.back}
        >
          <Icon of={ChevronLeft} />
        </Link>
        <h1>{words.compareTitle}</h1>
      </header>
      <ErrorText error={left.error || right.error} />
      {same && <p className={css.note.note}>{words.sameFolder}</p>}
      <div className={styles.columns}>
        <nav className={styles.both} aria-label={text.changes.list}>
          <ul>
            {files.map((both) => (
              <li key={both.path}>
                <button
                  type="button"
                  className={styles.bothFile}
                  aria-current={both === file ? "true" : undefined}
                  onClick={() => setChosen(both.path)}
                >
                  <Marked text={both.path} code />
                  <span className={css.texts.muted}>
                    {both.one && both.other
                      ? words.inBoth
                      : words.onlyIn(nameOf(both.one ? one : other))}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </nav>
        <Half session={one} name={names[0]} file={file?.one} path={file?.path} />
        <Half session={other} name={names[1]} file={file?.other} path={file?.path} />
      </div>
    </div>
  );
}

const twoNames = (one: string, other: string): [string, string] =>
  one === other ? [words.numbered(one, 1), words.numbered(other, 2)] : [one, other];

function Half(props: {
  session: Session;
  /** Its own, beside the other. */
  name: string;
  file: FileChange | undefined;
  path: string | undefined;
}) {
  const { session, file } = props;
  return (
    <section className={styles.half} aria-label={props.name}>
      <header>
        <Link href={`/changes/${encodeURIComponent(session.session)}`}>
          <Marked text={nameOf(session)} />
        </Link>
        {file && <Counts file={file} />}
      </header>
      {file ? (
        <HalfDiff key={file.path} session={session.session} name={props.name} file={file} />
      ) : (
        <p className={css.texts.muted}>{props.path ? words.noChange : words.chooseFile}</p>
      )}
    </section>
  );
}

function HalfDiff({ session, name, file }: { session: string; name: string; file: FileChange }) {
  const diff = useQuery(
    useCallback(
      () =>
        get<FileDiff>(sessionPath(session, "/diff/file"), {
          path: file.path,
          old_path: file.old_path ?? undefined,
        }),
      [session, file.path, file.old_path],
    ),
  );
  return (
    <>
      <ErrorText error={diff.error} />
      {diff.value?.binary && <p className={css.note.note}>{text.changes.binary}</p>}
      {diff.value && !diff.value.binary && (
        <DiffView
          session={session}
          diff={diff.value}
          layout="unified"
          comments={false}
          label={words.diffIn(file.path, name)}
        />
      )}
    </>
  );
}
