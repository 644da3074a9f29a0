import { GitFork } from "lucide-react";
import { Link } from "wouter";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { text } from "../../text";
import { Icon } from "../../ui/Icon";
import { Marked } from "../../ui/Marked";
import { withMarks } from "../../ui/marks";
import styles from "./head.module.css";

/** The session whose agent started this one. One that is deleted is named by its id. */
export function Starter({ id }: { id: string }) {
  const { head } = text.session;
  const name = useAppState((state) => {
    const session = state.sessions.get(id);
    return session ? nameOf(session) : id;
  });
  return (
    <Link
      href={`/s/${encodeURIComponent(id)}`}
      className={styles.chip ?? ""}
      title={head.startedByAgent(withMarks(name))}
    >
      <Icon of={GitFork} size={14} />
      <span className={styles.value}>
        <span className={styles.prefix}>{head.startedBy} </span>
        <Marked text={name} />
      </span>
    </Link>
  );
}
