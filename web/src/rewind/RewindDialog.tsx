import { useCallback } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import { type RewindChoice, type Rewound, rewind } from "./api";
import styles from "./rewind.module.css";

const words = text.rewind;
const MOST = 50;

/** What going back would change; and then go back. */
export function RewindDialog(props: {
  session: string;
  prompt: string;
  choice: RewindChoice;
  onClose: () => void;
}) {
  const { session, prompt, choice } = props;
  const { files, conversation } = choice;
  const would = useQuery(
    useCallback(
      () => rewind(session, prompt, { files, conversation }, true),
      [session, prompt, files, conversation],
    ),
  );
  const action = useAction();
  const go = (): void =>
    void action
      .run(() => rewind(session, prompt, choice, false))
      .then((succeeded) => succeeded && props.onClose());
  const kind = files && conversation ? "both" : files ? "files" : "conversation";
  const { value } = would;
  const possible =
    value !== undefined &&
    !(files && value.files_problem) &&
    !(conversation && value.conversation_problem);
  return (
    <Dialog
      title={words.titles[kind]}
      onClose={props.onClose}
      actions={
        <>
          <button type="button" onClick={props.onClose}>
            {text.common.cancel}
          </button>
          <button
            type="button"
            className={css.button.danger}
            disabled={!possible || action.busy}
            onClick={go}
          >
            {words.go}
          </button>
        </>
      }
    >
      <ErrorText error={action.error || would.error} />
      {!value && !would.error && <p className={css.texts.muted}>{words.looking}</p>}
      {value && files && <FilesPart would={value} />}
      {value && conversation && (
        <p data-tone={value.conversation_problem ? "bad" : undefined} className={css.note.note}>
          {value.conversation_problem
            ? words.conversationCannot(value.conversation_problem)
            : words.conversationWill}
        </p>
      )}
    </Dialog>
  );
}

function FilesPart({ would }: { would: Rewound }) {
  const changed = would.changed ?? [];
  if (would.files_problem) {
    return (
      <p className={css.note.note} data-tone="bad">
        {words.filesCannot(would.files_problem)}
      </p>
    );
  }
  return (
    <>
      <p>
        {changed.length
          ? words.wouldChange(changed.length, would.insertions ?? 0, would.deletions ?? 0)
          : words.nothingChanges}
      </p>
      <ul className={styles.paths}>
        {changed.slice(0, MOST).map((path) => (
          <li key={path}>
            <Marked text={path} code />
          </li>
        ))}
      </ul>
      <p className={css.texts.hint}>{words.shellWarning}</p>
    </>
  );
}
