import { useCallback, useState } from "react";
import { get } from "../api/http";
import type { Machine, Session } from "../api/types";
import { LOCAL } from "../sessions/newSessionSpec";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

const words = text.session.move;

/** The machines that can take over a session: those that are connected, but not its own. */
export function machinesFor(machines: readonly Machine[], session: Session): string[] {
  const own = session.spec.machine ?? LOCAL;
  return machines.filter((one) => one.connected && one.name !== own).map((one) => one.name);
}

/** Whether a session can be moved: the journal has its transcript, and no agent can be reached. */
export function canMove(session: Session): boolean {
  return !!session.spec.session_mirror && (!session.run || session.state === "disconnected");
}

/** Resumes a session on another machine. */
export function MoveDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const found = useQuery(useCallback(() => get<{ machines: Machine[] }>("/api/machines"), []));
  const names = machinesFor(found.value?.machines ?? [], session);
  const [chosen, setChosen] = useState("");
  const [directory, setDirectory] = useState(session.spec.directory ?? "");
  const action = useAction();
  const machine = chosen || names[0] || "";
  const move = (): void =>
    void action.run(async () => {
      await store.command({
        command: "session.move",
        session: session.session,
        machine,
        directory: directory.trim() || null,
      });
      onClose();
    });
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {text.common.cancel}
          </button>
          <button
            type="button"
            className={css.button.primary}
            disabled={!machine || action.busy}
            onClick={move}
          >
            {action.busy ? words.going : words.go}
          </button>
        </>
      }
    >
      <p>{words.hint}</p>
      {session.run && <p className={css.note.note}>{words.away}</p>}
      <label className={css.field.field}>
        <span>{words.machine}</span>
        <select
          value={machine}
          disabled={!names.length}
          onChange={(event) => setChosen(event.target.value)}
        >
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label className={css.field.field}>
        <span>{words.directory}</span>
        <input
          value={directory}
          spellCheck={false}
          onChange={(event) => setDirectory(event.target.value)}
        />
      </label>
      {session.spec.worktree && (
        <p className={css.texts.hint}>{words.branch(session.spec.worktree)}</p>
      )}
      {found.value && !names.length && <p className={css.note.note}>{words.none}</p>}
      <ErrorText error={found.error || action.error} />
    </Dialog>
  );
}
