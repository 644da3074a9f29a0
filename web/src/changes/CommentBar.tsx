import { useState } from "react";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { newId } from "../ui/format";
import styles from "./changes.module.css";
import { clearComments, promptOf, useComments } from "./comments";

const words = text.changes;

/** How many comments wait, and the way to send them as one prompt. */
export function CommentBar(props: { session: string; onSent: (report: string) => void }) {
  const { session } = props;
  const comments = useComments(session);
  const [prompt, setPrompt] = useState<string>();
  const send = (): void => {
    void store.prompts.send(session, newId(), prompt ?? "");
    clearComments(session);
    setPrompt(undefined);
    props.onSent(words.sent);
  };
  if (!comments.length && prompt === undefined) return null;
  return (
    <div className={styles.bar}>
      <span>{words.comments(comments.length)}</span>
      <button
        type="button"
        className={`${css.button.small} ${css.button.primary}`}
        onClick={() => setPrompt(promptOf(comments, words.promptIntro, words.promptOld))}
      >
        {words.reviewComments}
      </button>
      {prompt !== undefined && (
        <Dialog
          title={words.promptTitle}
          size="l"
          keepOpen
          onClose={() => setPrompt(undefined)}
          actions={
            <>
              <button
                type="button"
                className={css.button.ghost}
                onClick={() => {
                  clearComments(session);
                  setPrompt(undefined);
                }}
              >
                {words.discardComments}
              </button>
              <button
                type="button"
                className={css.button.primary}
                disabled={!prompt.trim()}
                onClick={() => send()}
              >
                {words.send}
              </button>
            </>
          }
        >
          <label className={css.field.field}>
            {words.promptHint}
            <textarea
              rows={14}
              value={prompt}
              onChange={(event) => setPrompt(event.target.value)}
            />
          </label>
        </Dialog>
      )}
    </div>
  );
}
