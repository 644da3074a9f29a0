import { useCallback, useState } from "react";
import { get, post, sessionPath } from "../api/http";
import { textOf } from "../state/coded";
import { lookup } from "../state/lookup";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import type { FolderDone, RemoteState } from "./types";

const words = text.changes;
const MOST = 10;

/** Push the branch and open a pull request: where to, and what, is shown before. */
export function PushDialog(props: {
  session: string;
  onClose: () => void;
  onDone: (report: string) => void;
}) {
  const { session } = props;
  const action = useAction();
  const [done, setDone] = useState<FolderDone>();
  const remote = useQuery(
    useCallback(() => get<RemoteState>(sessionPath(session, "/remote")), [session]),
  );
  const { value } = remote;
  const push = (): void =>
    void action.run(async () => {
      const body = { url: value?.url ?? "", commit: value?.commit ?? "" };
      const pushed = await post<FolderDone>(sessionPath(session, "/push"), body);
      setDone(pushed);
      props.onDone(textOf(pushed.coded, pushed.text));
      remote.reload();
    });
  const opened = done?.url?.startsWith("https://") && done.url !== value?.url ? done.url : "";
  return (
    <Dialog title={words.pushTitle} size="l" keepOpen onClose={props.onClose}>
      <ErrorText error={action.error || remote.error} />
      {!value && !remote.error && <p className={css.texts.muted}>{words.loading}</p>}
      {value?.problem && (
        <p className={css.note.note}>
          {lookup(words.pushProblems, value.problem) ?? value.problem}
        </p>
      )}
      {value?.url && value.branch && (
        <>
          <p>
            {words.pushWhere(value.branch, value.remote ?? "")}{" "}
            <code>
              <Marked text={value.url} code />
            </code>
          </p>
          <Commits remote={value} />
          <p className={css.texts.hint}>{words.pushRuns}</p>
          <div className={css.layout.buttons}>
            <button
              type="button"
              className={css.button.primary}
              disabled={action.busy || Boolean(value.problem) || !value.commits?.length}
              onClick={push}
            >
              {words.pushNow}
            </button>
          </div>
          {done && (
            <p role="status" className={css.note.note} data-tone="good">
              <Marked text={textOf(done.coded, done.text)} />{" "}
              {opened && (
                <a href={opened} target="_blank" rel="noreferrer">
                  {words.prShow}
                </a>
              )}
            </p>
          )}
          <h2>{words.pullRequest}</h2>
          {value.tool ? (
            <PullRequest
              session={session}
              remote={value}
              busy={action.busy}
              onOpen={(body) =>
                void action.run(async () => {
                  const path = sessionPath(session, "/pull-request");
                  const made = await post<FolderDone>(path, body);
                  setDone(made);
                  props.onDone(textOf(made.coded, made.text));
                })
              }
            />
          ) : (
            <p className={css.texts.muted}>{words.prNoTool}</p>
          )}
        </>
      )}
    </Dialog>
  );
}

function Commits({ remote }: { remote: RemoteState }) {
  const subjects = remote.commits ?? [];
  if (!subjects.length) return <p className={css.texts.muted}>{words.pushNothing}</p>;
  const more = subjects.length - MOST + (remote.more_commits ?? 0);
  return (
    <>
      <p>{words.pushCommits(subjects.length + (remote.more_commits ?? 0))}</p>
      <ul className={styles.commits}>
        {subjects.slice(0, MOST).map((subject, index) => (
          <li key={index}>
            <Marked text={subject} />
          </li>
        ))}
        {more > 0 && <li className={css.texts.muted}>{words.pushMore(more)}</li>}
      </ul>
    </>
  );
}

function PullRequest(props: {
  session: string;
  remote: RemoteState;
  busy: boolean;
  onOpen: (body: Record<string, string | boolean>) => void;
}) {
  const { remote } = props;
  const [title, setTitle] = useState("");
  const [base, setBase] = useState(remote.base ?? "main");
  const [body, setBody] = useState("");
  const [draft, setDraft] = useState(false);
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        props.onOpen({ url: remote.url ?? "", title, base, body, draft });
      }}
    >
      <label className={css.field.field}>
        {words.prTitle}
        <input value={title} onChange={(event) => setTitle(event.target.value)} />
      </label>
      <label className={css.field.field}>
        {words.prBase}
        <input value={base} onChange={(event) => setBase(event.target.value)} />
      </label>
      <label className={css.field.field}>
        {words.prBody}
        <textarea rows={4} value={body} onChange={(event) => setBody(event.target.value)} />
      </label>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={draft}
          onChange={(event) => setDraft(event.target.checked)}
        />
        {words.prDraft}
      </label>
      <p className={css.texts.hint}>{words.prRuns(remote.tool ?? "", remote.repository ?? "")}</p>
      <div className={css.layout.buttons}>
        <button type="submit" disabled={props.busy || !title.trim() || !base.trim()}>
          {words.prOpen}
        </button>
      </div>
    </form>
  );
}
