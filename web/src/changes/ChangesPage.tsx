import { ChevronLeft, GitCommitHorizontal, RefreshCw, Upload } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import type { Session } from "../api/types";
import { Checkpoints } from "../rewind/Checkpoints";
import { folderOf, nameOf } from "../state/sessions";
import { useAppState, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { Select } from "../ui/Select";
import { Tabs } from "../ui/Tabs";
import { NARROW, useMedia } from "../ui/useMedia";
import { useQuery } from "../ui/useQuery";
import { CommentBar } from "./CommentBar";
import { CommitDialog } from "./CommitDialog";
import styles from "./changes.module.css";
import { useComments } from "./comments";
import type { Layout } from "./DiffView";
import { FileList } from "./FileList";
import { FilePane } from "./FilePane";
import { FilesView } from "./FilesView";
import { PushDialog } from "./PushDialog";
import { changesPath } from "./paths";
import { loadChanges, recentChanges } from "./recent";
import { Settle } from "./Settle";
import type { Against } from "./types";

const words = text.changes;
const PARTS = ["changes", "files", "checkpoints"] as const;
type Part = (typeof PARTS)[number];
const LAYOUT = "quarterdeck.diffLayout";
const PAUSE_MS = 150;

/** The work of a session: its changes, its files, and the points to go back to. */
export default function ChangesPage({ id }: { id: string }) {
  const session = useAppState((state) => state.sessions.get(id));
  const listed = useAppState((state) => state.listed);
  const [, go] = useLocation();
  const search = new URLSearchParams(useSearch());
  const part = PARTS.find((one) => one === search.get("part")) ?? "changes";
  const file = search.get("file") ?? undefined;
  const show = (to: Part, path?: string): void => {
    const query = new URLSearchParams({ part: to, ...(path ? { file: path } : {}) });
    go(`${changesPath(id)}?${query}`, { replace: to === part && path !== undefined });
  };
  if (!session) {
    return (
      <div className={css.empty.page}>
        <p>{listed ? text.session.missing : words.loading}</p>
      </div>
    );
  }
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <Link
          href={`/s/${encodeURIComponent(id)}`}
          className={`${css.button.button} ${css.button.ghost} ${css.button.small} ${css.button.iconButton}`}
          aria-label={words.back}
          title={words.back}
        >
          <Icon of={ChevronLeft} />
        </Link>
        <h1>
          <Marked text={nameOf(session)} />
        </h1>
      </header>
      <Tabs
        label={words.parts}
        value={part}
        onChange={(value) => show(value)}
        tabs={PARTS.map((one) => ({ value: one, label: words.tabs[one] }))}
      >
        {part === "changes" && (
          <Review
            session={session}
            chosen={file}
            onChoose={(path) => show("changes", path)}
            onView={(path) => show("files", path)}
          />
        )}
        {part === "files" && (
          <FilesView
            session={id}
            folder={folderOf(session)}
            chosen={file}
            onChoose={(path) => show("files", path)}
          />
        )}
        {part === "checkpoints" && <Checkpoints session={session} />}
      </Tabs>
    </div>
  );
}

const loadLayout = (): Layout => (localStorage.getItem(LAYOUT) === "split" ? "split" : "unified");

function Review(props: {
  session: Session;
  chosen: string | undefined;
  onChoose: (path: string | undefined) => void;
  onView: (path: string) => void;
}) {
  const { session: id } = props.session;
  const rights = useRights();
  const mayChange = rights.includes("steer");
  const [against, setAgainst] = useState<Against>("session");
  const [layout, setLayout] = useState<Layout>(loadLayout);
  const [report, setReport] = useState("");
  const [dialog, setDialog] = useState<"commit" | "push">();
  const changes = useQuery(
    useCallback(async () => {
      // What is known is shown first: git is busy with the file until then.
      if (recentChanges(id, against)) await new Promise((done) => setTimeout(done, PAUSE_MS));
      return loadChanges(id, against);
    }, [id, against]),
  );
  const comments = useComments(id);
  const commented = useMemo(() => new Set(comments.map((one) => one.path)), [comments]);
  const value = changes.value ?? recentChanges(id, against);
  const files = useMemo(() => value?.files ?? [], [value]);
  const closed = useMemo(() => new Set(value?.closed ?? []), [value]);
  const narrow = useMedia(NARROW);
  const first = narrow ? undefined : files[0]?.path;
  const path = props.chosen ?? first;
  const index = files.findIndex((one) => one.path === path);
  const file = files[index];
  const [removed, setRemoved] = useState(false);
  const done = (said: string, gone = false): void => {
    setReport(said);
    if (gone) setRemoved(true);
    else changes.reload();
  };
  const publish = mayChange && value && (
    <>
      <button type="button" className={css.button.small} onClick={() => setDialog("commit")}>
        <Icon of={GitCommitHorizontal} />
        {words.commit}
      </button>
      <button type="button" className={css.button.small} onClick={() => setDialog("push")}>
        <Icon of={Upload} />
        {words.push}
      </button>
    </>
  );
  if (removed) {
    return (
      <p className={styles.choose} role="status">
        <Marked text={report} />
      </p>
    );
  }
  return (
    <>
      <div className={styles.tools} data-file={file !== undefined || undefined}>
        {value && (
          <p className={styles.summary}>
            <strong>{words.summary(files.length, value.added ?? 0, value.removed ?? 0)}</strong>{" "}
            {words.since[value.since ?? "head"]}
            {(value.uncommitted ?? 0) > 0 && ` · ${words.notCommitted(value.uncommitted ?? 0)}`}
            {(value.files_left_out ?? 0) > 0 && ` · ${words.leftOut(value.files_left_out ?? 0)}`}
          </p>
        )}
        <span className={css.layout.spread} />
        <div className={styles.comments}>
          <CommentBar session={id} onSent={setReport} />
        </div>
        <Select
          label={words.against}
          className={css.button.small}
          value={against}
          options={[
            { value: "session", label: words.againstChoices.session },
            { value: "head", label: words.againstChoices.head },
          ]}
          onChange={setAgainst}
        />
        <span className={styles.wide}>
          <Select
            label={words.layout}
            className={css.button.small}
            value={layout}
            options={[
              { value: "unified", label: words.unified },
              { value: "split", label: words.split },
            ]}
            onChange={(chosen) => {
              localStorage.setItem(LAYOUT, chosen);
              setLayout(chosen);
            }}
          />
        </span>
        <IconButton
          icon={RefreshCw}
          label={words.reload}
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={changes.reload}
        />
        {!narrow && publish}
        {value?.branch && rights.includes("manage") && (
          <fieldset className={styles.settle} aria-label={words.worktree(value.branch)}>
            <Settle session={id} uncommitted={value.uncommitted ?? 0} onDone={done} />
          </fieldset>
        )}
      </div>
      {report && (
        <p className={styles.remark} role="status">
          <Marked text={report} />
        </p>
      )}
      <ErrorText error={changes.error} />
      {!changes.error && !value && (
        <p className={`${css.texts.muted} ${styles.choose}`}>{words.loading}</p>
      )}
      {changes.error && !value && <p className={css.texts.muted}>{words.noGit}</p>}
      {value && !files.length && (
        <p className={`${css.texts.muted} ${styles.choose}`}>{words.none}</p>
      )}
      {files.length > 0 && (
        <div
          className={styles.review}
          data-file={file !== undefined || undefined}
          data-testid="review"
        >
          <FileList
            files={files}
            chosen={path}
            onChoose={props.onChoose}
            closed={closed}
            commented={commented}
          />
          {file ? (
            <FilePane
              key={`${file.path}:${against}`}
              session={id}
              file={file}
              against={against}
              layout={narrow ? "unified" : layout}
              top={value?.directory ?? ""}
              mayChange={mayChange}
              closed={closed.has(file.path)}
              onList={() => props.onChoose(undefined)}
              onView={() => props.onView(file.path)}
              onStep={(by) =>
                props.onChoose(files[(index + by + files.length) % files.length]?.path)
              }
              onChanged={done}
            />
          ) : (
            <p className={`${css.texts.muted} ${styles.choose}`}>{words.chooseFile}</p>
          )}
        </div>
      )}
      {narrow && publish && !file && (
        <footer className={styles.bottom} data-part="publish">
          {publish}
        </footer>
      )}
      {dialog === "commit" && (
        <CommitDialog session={id} onClose={() => setDialog(undefined)} onDone={done} />
      )}
      {dialog === "push" && (
        <PushDialog session={id} onClose={() => setDialog(undefined)} onDone={done} />
      )}
    </>
  );
}
