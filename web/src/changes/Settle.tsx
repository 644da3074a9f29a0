import { useState } from "react";
import { post, sessionPath } from "../api/http";
import { textOf } from "../state/coded";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import type { TreeSettled } from "./types";

const words = text.changes;
const ACTIONS = ["merge", "keep", "discard"] as const;
type Action = (typeof ACTIONS)[number];

/** Merge, keep or discard a worktree: what will happen is said before. */
export function Settle(props: {
  session: string;
  uncommitted: number;
  /** `removed`: the worktree and its branch are gone. */
  onDone: (report: string, removed: boolean) => void;
}) {
  const { session } = props;
  const [asked, setAsked] = useState<{ action: Action; text: string }>();
  const [message, setMessage] = useState("");
  const action = useAction();
  const path = sessionPath(session, "/worktree");
  const preview = (chosen: Action): void =>
    void action.run(async () => {
      const would = await post<TreeSettled>(path, { action: chosen, dry_run: true });
      setAsked({ action: chosen, text: textOf(would.coded, would.text) });
    });
  const settle = (chosen: Action): void =>
    void action.run(async () => {
      const said = chosen === "merge" && message.trim() ? { message } : {};
      const done = await post<TreeSettled>(path, { action: chosen, ...said });
      setAsked(undefined);
      props.onDone(textOf(done.coded, done.text), done.removed ?? false);
    });
  const needsMessage = asked?.action === "merge" && props.uncommitted > 0;
  return (
    <>
      {ACTIONS.map((one) => (
        <button
          key={one}
          type="button"
          className={one === "merge" ? css.button.small : `${css.button.small} ${css.button.ghost}`}
          disabled={action.busy}
          onClick={() => preview(one)}
        >
          {words.settle[one]}
        </button>
      ))}
      {!asked && <ErrorText error={action.error} />}
      {asked && (
        <Dialog
          title={words.settleTitle[asked.action]}
          size="m"
          onClose={() => setAsked(undefined)}
          actions={
            <>
              <button type="button" onClick={() => setAsked(undefined)}>
                {text.common.cancel}
              </button>
              <button
                type="button"
                className={asked.action === "discard" ? css.button.danger : css.button.primary}
                disabled={action.busy || (needsMessage && !message.trim())}
                onClick={() => settle(asked.action)}
              >
                {words.settleVerb[asked.action]}
              </button>
            </>
          }
        >
          <p>
            <Marked text={asked.text} />
          </p>
          {needsMessage && (
            <label className={css.field.field}>
              {words.settleMessage}
              <textarea
                rows={2}
                value={message}
                onChange={(event) => setMessage(event.target.value)}
              />
            </label>
          )}
          <ErrorText error={action.error} />
        </Dialog>
      )}
    </>
  );
}
