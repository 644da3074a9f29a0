import { GitPullRequestArrow } from "lucide-react";
import { useCallback, useEffect } from "react";
import { Link } from "wouter";
import { text } from "../text";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import { Counts } from "./FileList";
import { changesPath } from "./paths";
import { loadChanges } from "./recent";

const words = text.changes;
const MOST = 30;

/** The changed files of a session in short, and the way to their review. */
export function ChangesSummary({ session, head }: { session: string; head: number }) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the agent does may change files
  const ask = useCallback(() => loadChanges(session, "session"), [session, head]);
  const { value, error } = useQuery(ask);
  // The next click finds the code of the page.
  useEffect(() => void import("./ChangesPage").catch(() => undefined), []);
  const files = value?.files ?? [];
  return (
    <section className={styles.short} aria-label={words.title}>
      <Link href={changesPath(session)} className="button small">
        <Icon of={GitPullRequestArrow} />
        {words.open}
      </Link>
      {error && <p className="muted">{words.noGit}</p>}
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
