import { useState } from "react";
import { store, useAppState } from "../state/store";
import type { PromptEntry } from "../state/story";
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
      <ul className={styles.queue} aria-label="Queued prompts">
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
                  aria-label="Edit prompt"
                  value={editing.text}
                  onChange={(event) => setEditing({ id: prompt.id, text: event.target.value })}
                />
                <button type="submit" className="small primary">
                  Save
                </button>
                <button type="button" className="small" onClick={() => setEditing(undefined)}>
                  Back
                </button>
              </form>
            ) : (
              <>
                <span className="stage">queued</span>
                <span className={styles.title}>{prompt.text}</span>
                <button
                  type="button"
                  className="ghost small"
                  onClick={() => setEditing({ id: prompt.id, text: prompt.text })}
                >
                  Edit
                </button>
                <button type="button" className="ghost small" onClick={() => cancel(prompt.id)}>
                  Cancel
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
    <ul className={styles.queue} aria-label="Unsent prompts">
      {ours.map((one) => (
        <li key={one.id}>
          <span className="stage">{one.error ? "not sent" : "sending"}</span>
          <span className={styles.title}>
            {typeof one.content === "string" ? one.content : "(with images)"}
          </span>
          {one.error && <span className="error">{one.error}</span>}
          {one.error && (
            <button
              type="button"
              className="ghost small"
              onClick={() => void store.prompts.send(session, one.id, one.content)}
            >
              Retry
            </button>
          )}
          <button
            type="button"
            className="ghost small"
            onClick={() => store.prompts.discard(one.id)}
          >
            Discard
          </button>
        </li>
      ))}
    </ul>
  );
}
