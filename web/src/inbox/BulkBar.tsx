import { useState } from "react";
import type { Answer, Ask } from "../api/types";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { takeFocus } from "../ui/focus";
import { undoSeconds } from "../ui/preferences";
import { useEscape } from "../ui/useEscape";
import styles from "./inbox.module.css";

/** Answers for all questions that are selected. Each card tells how its own answer went. */
export function BulkBar(props: {
  asks: readonly string[];
  open: ReadonlyMap<string, Ask>;
  onDone: () => void;
}) {
  const [denying, setDenying] = useState(false);
  const [reason, setReason] = useState("");
  useEscape(true, denying ? () => setDenying(false) : props.onDone);
  const words = text.inbox;
  const count = props.asks.length;
  const answerAll = (answer: Answer): void => {
    // More than one call at once: there is a moment to take each of them back.
    for (const ask of props.asks) store.asks.hold(ask, answer, undoSeconds());
    props.onDone();
  };
  return (
    <fieldset className={styles.bulk} aria-label={words.answerSelected}>
      <p role="status">{words.selected(count)}</p>
      {denying ? (
        <>
          <label className={css.field.field}>
            {words.reason}
            <textarea
              ref={takeFocus}
              rows={2}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            />
          </label>
          <div className={css.layout.buttons}>
            <button
              type="button"
              className={css.button.danger}
              onClick={() => answerAll({ answer: "deny", message: reason, stop: false })}
            >
              {words.deny(count)}
            </button>
            <button type="button" onClick={() => setDenying(false)}>
              {text.common.back}
            </button>
          </div>
        </>
      ) : (
        <div className={css.layout.buttons}>
          <button
            type="button"
            className={css.button.primary}
            onClick={() => answerAll({ answer: "allow", scope: "once" })}
          >
            {words.allow(count)}
          </button>
          <button type="button" className={css.button.danger} onClick={() => setDenying(true)}>
            {words.denyWith(count)}
          </button>
          <button type="button" onClick={props.onDone}>
            {words.clear}
          </button>
        </div>
      )}
    </fieldset>
  );
}
