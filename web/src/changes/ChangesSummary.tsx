import { GitPullRequestArrow } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { text } from "../text";
import { css } from "../ui/css";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import { Counts } from "./FileList";
import { changesPath } from "./paths";
import { loadChanges, loadDiff, recentDiff } from "./recent";

const words = text.changes;
const MOST = 30;
/** In ms: an agent at work does many things a second, and each would start git. */
const SETTLED_MS = 1000;

/** A value that changes at most so often; the first and the last one are never left out. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  const changed = useRef(0);
  useEffect(() => {
    const timer = setTimeout(
      () => {
        changed.current = Date.now();
        setSettled(value);
      },
      Math.max(0, changed.current + ms - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** The changed files of a session in short, and the way to their review. */
export function ChangesSummary({ session, head }: { session: string; head: number }) {
  const settled = useSettled(head, SETTLED_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the agent does may change files
  const ask = useCallback(() => loadChanges(session, "session"), [session, settled]);
  const { value, error } = useQuery(ask);
  // The next click finds what it shows first.
  const first = value?.files?.[0];
  const closed = first !== undefined && value?.closed?.includes(first.path);
  useEffect(() => {
    if (!first || closed || recentDiff(session, "session", first)) return;
    void loadDiff(session, "session", first).catch(() => undefined);
  }, [session, first, closed]);
  // The next click finds the code of the page.
  useEffect(() => void import("./ChangesPage").catch(() => undefined), []);
  const files = value?.files ?? [];
  return (
    <section className={styles.short} aria-label={words.title}>
      <Link href={changesPath(session)} className={`${css.button.button} ${css.button.small}`}>
        <Icon of={GitPullRequestArrow} />
        {words.open}
      </Link>
      {error && <p className={css.texts.muted}>{words.noGit}</p>}
      {value && (
        <p className={styles.summary}>
          {files.length
            ? words.summary(files.length, value.added ?? 0, value.removed ?? 0)
            : words.none}{" "}
          {words.since[value.since ?? "head"]}
        </p>
      )}
      <ul>
        {files.slice(0, MOST).map((file) => (
          <li key={file.path}>
            <Link href={`${changesPath(session)}?file=${encodeURIComponent(file.path)}`}>
              <Marked text={file.path} code />
            </Link>{" "}
            <Counts file={file} />
          </li>
        ))}
      </ul>
    </section>
  );
}
