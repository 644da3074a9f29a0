// The branch that is checked out in a session's folder, kept up to date while the session runs.
import { useEffect, useState } from "react";
import { get, sessionPath } from "../../api/http";
import type { components } from "../../api/schema";
import type { Session } from "../../api/types";

type Entries = components["schemas"]["Entries"];

/** Machines on which nobody can look. */
// As `protocol/machines.py`, with the values that journals have.
const UNMANAGED: ReadonlySet<string> = new Set(["dialled", "program"]);
/** In ms: calls that follow each other quickly are looked at once. */
const PAUSE = 500;

/**
 * The branch of a session's folder; undefined where there is none, or nobody can look. A call may have
 * checked out another one, so it is asked for again when the calls that run have changed.
 */
export function useBranch(session: Session): string | undefined {
  const { session: id, run, state } = session;
  const own = session.spec.worktree ?? undefined;
  const [found, setFound] = useState<{ id: string; branch: string | undefined }>();
  const calls = session.holds.tools.map((one) => one.call).join();
  const canLook = run !== null && state !== "disconnected" && state !== "starting";
  const managed = !UNMANAGED.has(session.machine ?? "");
  const there = canLook && managed && session.directory !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a call that has ended may have changed it
  useEffect(() => {
    if (!there) return;
    let current = true;
    const timer = setTimeout(() => {
      get<Entries>(sessionPath(id, "/files")).then(
        ({ branch }) => current && setFound({ id, branch: branch ?? undefined }),
        () => undefined, // the folder is gone, or its machine: what was known stays
      );
    }, PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [id, there, calls, state]);
  return (found?.id === id ? found.branch : undefined) ?? own;
}
