// Going back and forking, by the hub's commands.
import type { components } from "../api/schema";
import { store } from "../state/store";

export type Checkpoint = components["schemas"]["Checkpoint"];
export type CheckpointList = components["schemas"]["CheckpointList"];
export interface Rewound {
  files?: boolean;
  files_problem?: string;
  changed?: string[];
  insertions?: number;
  deletions?: number;
  conversation?: boolean;
  conversation_problem?: string;
}
export interface RewindChoice {
  files: boolean;
  conversation: boolean;
}

/** Go back to before a prompt, or only ask what would change. */
export async function rewind(
  session: string,
  prompt: string,
  choice: RewindChoice,
  dryRun: boolean,
): Promise<Rewound> {
  const done = await store.command({
    command: "session.rewind",
    session,
    prompt,
    ...choice,
    dry_run: dryRun,
  });
  return (done.answer ?? {}) as Rewound;
}

/** A copy of a session, up to before a prompt, in its folder or a worktree of its own; gives its id. */
export async function fork(
  session: string,
  wanted: { before?: string | undefined; worktree?: string } = {},
): Promise<string> {
  const made = await store.command({
    command: "session.fork",
    session,
    ...(wanted.before ? { before: wanted.before } : {}),
    ...(wanted.worktree ? { worktree: wanted.worktree } : {}),
  });
  return made.session;
}

/** A new session that has not seen a prompt; gives its id. */
export const forkBefore = (session: string, prompt: string): Promise<string> =>
  fork(session, { before: prompt });

/** Whether this version of the CLI goes back with its conversation in place. */
export function goesBackInPlace(version: string | null | undefined): boolean {
  const [major = 0, minor = 0, patch = 0] = (version ?? "").split(".").map(Number);
  return major > 2 || (major === 2 && (minor > 1 || (minor === 1 && patch >= 200)));
}
