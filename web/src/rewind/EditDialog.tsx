import { useState } from "react";
import { useLocation } from "wouter";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { newId } from "../ui/format";
import { useAction } from "../ui/useAction";
import { forkBefore, rewind } from "./api";
import styles from "./rewind.module.css";

const words = text.rewind;

/** Change a prompt and send it again: in a fork, or here once the conversation has gone back. */
export function EditDialog(props: {
  session: string;
  prompt: string;
  words: string;
  /** The conversation can go back in place. */
  inPlace: boolean;
  mayFork: boolean;
  onClose: () => void;
}) {
  const { session, prompt } = props;
  const [, go] = useLocation();
  const [typed, setTyped] = useState(props.words);
  const [here, setHere] = useState(!props.mayFork);
  const [files, setFiles] = useState(false);
  const action = useAction();
  const send = (): void =>
    void action.run(async () => {
      let target = session;
      if (here) await rewind(session, prompt, { files, conversation: true }, false);
      else target = await forkBefore(session, prompt);
      void store.prompts.send(target, newId(), typed);
      props.onClose();
      if (target !== session) go(`/s/${encodeURIComponent(target)}`);
    });
  return (
    <Dialog
      title={words.editTitle}
      size="l"
      keepOpen
      onClose={props.onClose}
      actions={
        <>
          <button type="button" onClick={props.onClose}>
            {text.common.cancel}
          </button>
          <button
            type="button"
            className={css.button.primary}
            disabled={!typed.trim() || action.busy || (here && !props.inPlace)}
            onClick={send}
          >
            {words.send}
          </button>
        </>
      }
    >
      <label className={css.field.field}>
        {words.editField}
        <textarea rows={8} value={typed} onChange={(event) => setTyped(event.target.value)} />
      </label>
      <fieldset className={styles.where}>
        <legend>{words.where}</legend>
        <label>
          <input
            type="radio"
            name="where"
            checked={!here}
            disabled={!props.mayFork}
            onChange={() => setHere(false)}
          />
          {words.inFork} <span className={css.texts.muted}>{words.inForkHint}</span>
        </label>
        <label>
          <input
            type="radio"
            name="where"
            checked={here}
            disabled={!props.inPlace}
            onChange={() => setHere(true)}
          />
          {words.here}{" "}
          <span className={css.texts.muted}>
            {props.inPlace ? words.hereHint : words.notHere(null)}
          </span>
        </label>
        {here && (
          <label>
            <input
              type="checkbox"
              checked={files}
              onChange={(event) => setFiles(event.target.checked)}
            />
            {words.alsoFiles}
          </label>
        )}
      </fieldset>
      <ErrorText error={action.error} />
    </Dialog>
  );
}
