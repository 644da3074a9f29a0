import { ArrowLeft, ArrowRight, Eye, List, SquareArrowOutUpRight, Undo2 } from "lucide-react";
import { useCallback, useState } from "react";
import { post, sessionPath } from "../api/http";
import { textOf } from "../state/coded";
import { text } from "../text";
import { Confirm } from "../ui/Confirm";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import styles from "./changes.module.css";
import { DiffView, type Layout } from "./DiffView";
import { editor, editorLink } from "./editors";
import { Counts } from "./FileList";
import { loadDiff, recentDiff } from "./recent";
import type { Against, BlockId, FileChange, FileDiff, FolderDone } from "./types";

const words = text.changes;

interface Props {
  session: string;
  file: FileChange;
  against: Against;
  layout: Layout;
  /** The top folder of the repository. */
  top: string;
  mayChange: boolean;
  closed: boolean;
  onList: () => void;
  onView: () => void;
  onStep: (by: 1 | -1) => void;
  /** Something was undone. */
  onChanged: (report: string) => void;
}

/** One changed file: what can be done with it, and its diff. */
export function FilePane(props: Props) {
  const { session, file, against } = props;
  const [asked, setAsked] = useState<{ block?: BlockId }>();
  const action = useAction();
  const { closed } = props;
  const diff = useQuery(
    // biome-ignore lint/correctness/useExhaustiveDependencies: with other counts it is no other file
    useCallback(
      () => (closed ? Promise.resolve(undefined) : loadDiff(session, against, file)),
      [session, file.path, file.old_path, against, closed],
    ),
  );
  const fresh = diff.value?.path === file.path ? diff.value : undefined;
  const current = fresh ?? (closed ? undefined : recentDiff(session, against, file));
  const undo = (block?: BlockId): void =>
    void action.run(async () => {
      const done = await post<FolderDone>(sessionPath(session, "/revert"), {
        path: file.path,
        ...(file.old_path ? { old_path: file.old_path } : {}),
        against,
        digest: current?.digest ?? "",
        blocks: block ? [block] : [],
      });
      diff.reload();
      props.onChanged(textOf(done.coded, done.text));
    });
  const link = editorLink(editor(), `${props.top}/${file.path}`);
  const deleted = file.status === "deleted";
  return (
    <section className={styles.pane} aria-label={words.fileOf(file.path)}>
      <header className={styles.paneHead}>
        <IconButton
          icon={List}
          label={words.toList}
          className={`${css.button.ghost} ${css.button.small} ${styles.toList}`}
          onClick={props.onList}
        />
        <h2>
          <Marked text={file.path} code />
        </h2>
        <Counts file={file} />
        <span className={css.layout.spread} />
        <IconButton
          icon={ArrowLeft}
          label={words.previous}
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => props.onStep(-1)}
        />
        <IconButton
          icon={ArrowRight}
          label={words.next}
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => props.onStep(1)}
        />
        {!deleted && (
          <IconButton
            icon={Eye}
            label={words.viewFile}
            className={`${css.button.ghost} ${css.button.small}`}
            onClick={props.onView}
          />
        )}
        {link && !deleted && (
          <a
            className={`${css.button.button} ${css.button.ghost} ${css.button.small} ${css.button.iconButton}`}
            href={link}
            title={words.openInEditor}
          >
            <Icon of={SquareArrowOutUpRight} />
            <span className={css.texts.visuallyHidden}>{words.openInEditor}</span>
          </a>
        )}
        {props.mayChange && (
          <button type="button" className={css.button.small} onClick={() => setAsked({})}>
            <Icon of={Undo2} />
            {words.undoFile}
          </button>
        )}
      </header>
      {file.old_path && <p className={styles.remark}>{words.renamedFrom(file.old_path)}</p>}
      <ErrorText error={action.error || diff.error} />
      {closed ? (
        <p className={css.note.note}>{words.closed}</p>
      ) : (
        current && <Remarks diff={current} />
      )}
      {current?.patch && !current.binary && (
        <DiffView
          key={`${file.path}:${current.digest}`}
          session={session}
          diff={current}
          layout={props.layout}
          comments={props.mayChange}
          onUndo={
            props.mayChange && file.status === "modified"
              ? (block) => setAsked({ block })
              : undefined
          }
        />
      )}
      {asked && (
        <Confirm
          title={asked.block ? words.undoBlockTitle : words.undoTitle}
          verb={words.undo}
          onConfirm={() => undo(asked.block)}
          onClose={() => setAsked(undefined)}
        >
          <p>{words.undoText(file.path)}</p>
        </Confirm>
      )}
    </section>
  );
}

function Remarks({ diff }: { diff: FileDiff }) {
  if (diff.binary) return <p className={css.note.note}>{words.binary}</p>;
  if (!diff.patch?.includes("\n@@ ")) return <p className={css.note.note}>{words.onlyMode}</p>;
  return (
    <>
      {diff.cut && <p className={css.note.note}>{words.tooLong}</p>}
      {!diff.whole && !diff.cut && <p className={styles.remark}>{words.notWhole}</p>}
    </>
  );
}
