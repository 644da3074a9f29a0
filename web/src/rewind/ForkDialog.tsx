import { useCallback, useState } from "react";
import { useLocation } from "wouter";
import { get, sessionPath } from "../api/http";
import type { Session } from "../api/types";
import type { Changes } from "../changes/types";
import { nameOf, type Sessions } from "../state/sessions";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import { fork } from "./api";

const words = text.rewind;

/** A branch for the fork of a session, from the session's name. */
export function branchFor(name: string, taken: number): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  return `fork/${slug || "session"}-${taken + 1}`;
}

/** How many forks of a session there are. */
export function forksOf(sessions: Sessions, id: string): number {
  let count = 0;
  for (const one of sessions.values()) if (one.parent === id) count += 1;
  return count;
}

/** A fork that works in a worktree of its own, with the files as they are now. */
export function ForkDialog(props: {
  session: Session;
  /** The fork has not seen this prompt. */
  before?: string;
  /** How many forks the session has. */
  forks: number;
  onClose: () => void;
}) {
  const { session, before, forks } = props;
  const id = session.session;
  const [, go] = useLocation();
  const [branch, setBranch] = useState(() => branchFor(nameOf(session), forks));
  const found = useQuery(
    useCallback(
      () => get<Changes>(sessionPath(id, "/diff"), { text_limit: 0, against: "head" }),
      [id],
    ),
  );
  const action = useAction();
  const begin = (): void =>
    void action.run(async () => {
      const made = await fork(id, { before, worktree: branch.trim() });
      props.onClose();
      go(`/s/${encodeURIComponent(made)}`);
    });
  const open = found.value?.files?.length ?? 0;
  return (
    <Dialog
      title={words.ownTitle}
      onClose={props.onClose}
      actions={
        <>
          <button type="button" onClick={props.onClose}>
            {text.common.cancel}
          </button>
          <button
            type="button"
            className={css.button.primary}
            disabled={!branch.trim() || action.busy || !found.value}
            onClick={begin}
          >
            {words.ownBegin}
          </button>
        </>
      }
    >
      <p>{words.ownText}</p>
      <label className={css.field.field}>
        {words.ownBranch}
        <input value={branch} onChange={(event) => setBranch(event.target.value)} />
      </label>
      {found.value && <p className={css.texts.hint}>{words.ownOpen(open)}</p>}
      {found.error && <p className={css.note.note}>{words.ownNoGit}</p>}
      <ErrorText error={action.error} />
    </Dialog>
  );
}
