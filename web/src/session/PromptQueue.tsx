import { useState } from "react";
import { plainText } from "../state/contentBlocks";
import { store, useAppState } from "../state/store";
import type { PromptEntry } from "../state/story";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { takeFocus } from "../ui/focus";
import { useAction } from "../ui/useAction";
import { useEscape } from "../ui/useEscape";
import styles from "./composer.module.css";

/** Prompts that wait for the current turn to end: each can be edited or cancelled. */
export function QueuedPrompts({ session, queued }: { session: string; queued: PromptEntry[] }) {
  const [editing, setEditing] = useState<{ id: string; text: string }>();
  const action = useAction();
  useEscape(editing !== undefined, () => setEditing(undefined));
  const save = (prompt: string, content: string): void => {
    void action.run(() => store.command({ command: "prompt.change", session, prompt, content }));
    setEditing(undefined);
  };
  const cancel = (prompt: string): void =>
    void action.run(() => store.command({ command: "prompt.cancel", session, prompt }));
  return (
    <>
      <ul className={styles.queue} aria-label={text.composer.queuedPrompts}>
        {queued.map((prompt) => (
          <li key={prompt.id}>
            {editing?.id === prompt.id ? (
              <form
                onSubmit={(event) => {
                  event.preventDefault();
                  save(prompt.id, editing.text);
                }}
              >
                <textarea
                  ref={takeFocus}
                  aria-label={text.composer.editPrompt}
                  value={editing.text}
                  onChange={(event) => setEditing({ id: prompt.id, text: event.target.value })}
                />
                <button type="submit" className={`${css.button.small} ${css.button.primary}`}>
                  {text.composer.save}
                </button>
                <button
                  type="button"
                  className={css.button.small}
                  onClick={() => setEditing(undefined)}
                >
                  {text.composer.back}
                </button>
              </form>
            ) : (
              <>
                <span className={`${css.badge.stage} ${styles.stage}`}>{text.composer.queued}</span>
                <span className={styles.title}>{prompt.text}</span>
                <button
                  type="button"
                  className={`${css.button.ghost} ${css.button.small}`}
                  onClick={() => setEditing({ id: prompt.id, text: prompt.text })}
                >
                  {text.composer.edit}
                </button>
                <button
                  type="button"
                  className={`${css.button.ghost} ${css.button.small}`}
                  onClick={() => cancel(prompt.id)}
                >
                  {text.composer.cancel}
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
      <ErrorText error={action.error} />
    </>
  );
}

/** Prompts that the hub has not acknowledged. */
export function UnsentPrompts({ session }: { session: string }) {
  const unsent = useAppState((state) => state.unsent);
  const ours = Object.values(unsent).filter((one) => one.session === session);
  if (!ours.length) return null;
  return (
    <ul className={styles.queue} aria-label={text.composer.unsentPrompts}>
      {ours.map((one) => (
        <li key={one.id}>
          <span className={`${css.badge.stage} ${styles.stage}`}>
            {one.error ? text.composer.notSent : text.composer.sending}
          </span>
          <span className={styles.title}>{contentText(one.content)}</span>
          {one.error && <span className={css.texts.error}>{one.error}</span>}
          {one.error && (
            <button
              type="button"
              className={`${css.button.ghost} ${css.button.small}`}
              onClick={() => void store.prompts.send(session, one.id, one.content, one.steer)}
            >
              {text.composer.retry}
            </button>
          )}
          <button
            type="button"
            className={`${css.button.ghost} ${css.button.small}`}
            onClick={() => store.prompts.discard(one.id)}
          >
            {text.composer.discard}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The words of a prompt; what is attached is only mentioned. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return [plainText(content), text.composer.withAttachments].filter(Boolean).join(" ");
}
