import { useCallback, useState } from "react";
import { get, post, sessionPath } from "../api/http";
import { textOf } from "../state/coded";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import { Counts } from "./FileList";
import type { Changes, FolderDone } from "./types";

const words = text.changes;

/** Stage files and commit them. */
export function CommitDialog(props: {
  session: string;
  onClose: () => void;
  onDone: (report: string) => void;
}) {
  const { session } = props;
  const [message, setMessage] = useState("");
  const action = useAction();
  const changes = useQuery(
    useCallback(
      () => get<Changes>(sessionPath(session, "/diff"), { against: "head", text_limit: 0 }),
      [session],
    ),
  );
  const files = changes.value?.files ?? [];
  const staged = files.filter((file) => file.staged !== "none");
  const stage = (path: string, old: string | null | undefined, on: boolean): void =>
    void action.run(async () => {
      const paths = old ? [path, old] : [path];
      await post<FolderDone>(sessionPath(session, "/stage"), { paths, staged: on });
      changes.reload();
    });
  const commit = (all: boolean): void =>
    void action.run(async () => {
      const done = await post<FolderDone>(sessionPath(session, "/commit"), {
        message,
        all_files: all,
      });
      props.onDone(textOf(done.coded, done.text));
      props.onClose();
    });
  const ready = message.trim() !== "" && !action.busy;
  return (
    <Dialog
      title={words.commitTitle}
      size="l"
      keepOpen
      onClose={props.onClose}
      actions={
        <>
          <button type="button" disabled={!ready || !files.length} onClick={() => commit(true)}>
            {words.commitAll}
          </button>
          <button
            type="button"
            className={css.button.primary}
            disabled={!ready || !staged.length}
            onClick={() => commit(false)}
          >
            {words.commitStaged(staged.length)}
          </button>
        </>
      }
    >
      <label className={css.field.field}>
        {words.commitMessage}
        <textarea rows={3} value={message} onChange={(event) => setMessage(event.target.value)} />
      </label>
      <ErrorText error={action.error || changes.error} />
      {changes.value && !files.length && <p className={css.texts.muted}>{words.nothingToCommit}</p>}
      <ul className={styles.stage}>
        {files.map((file) => (
          <li key={file.path}>
            <label>
              <input
                type="checkbox"
                aria-label={words.stage(file.path)}
                checked={file.staged === "all"}
                ref={(box) => {
                  if (box) box.indeterminate = file.staged === "part";
                }}
                disabled={action.busy}
                onChange={(event) => stage(file.path, file.old_path, event.target.checked)}
              />
              <span className={styles.name}>
                <Marked text={file.path} code />
              </span>
              {file.staged === "part" && <span className={css.texts.muted}>{words.partly}</span>}
              <Counts file={file} />
            </label>
          </li>
        ))}
      </ul>
      <p className={css.texts.hint}>{words.commitRuns}</p>
    </Dialog>
  );
}
