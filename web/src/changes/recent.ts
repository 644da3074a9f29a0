// What was seen last of the changes: a review opens with it, and is then read again.
import { get, sessionPath } from "../api/http";
import type { Against, Changes, FileChange, FileDiff } from "./types";

const MOST = 20;
/** Diffs that are kept; one can have some megabytes. */
const MOST_DIFFS = 6;
const recent = new Map<string, Changes>();
const diffs = new Map<string, { file: FileChange; diff: FileDiff }>();
const keyOf = (session: string, against: Against, path = ""): string =>
  `${against}:${session}:${path}`;

export const recentChanges = (session: string, against: Against): Changes | undefined =>
  recent.get(keyOf(session, against));

export async function loadChanges(session: string, against: Against): Promise<Changes> {
  const found = await get<Changes>(sessionPath(session, "/diff"), { against, text_limit: 0 });
  keep(recent, keyOf(session, against), found, MOST);
  return found;
}

/** The diff of a file that was seen last, if the file has as many changed lines as it had then. */
export function recentDiff(
  session: string,
  against: Against,
  file: FileChange,
): FileDiff | undefined {
  const known = diffs.get(keyOf(session, against, file.path));
  const same = known?.file.added === file.added && known?.file.removed === file.removed;
  return same && known?.file.status === file.status ? known.diff : undefined;
}

export async function loadDiff(
  session: string,
  against: Against,
  file: FileChange,
): Promise<FileDiff> {
  const found = await get<FileDiff>(sessionPath(session, "/diff/file"), {
    path: file.path,
    old_path: file.old_path ?? undefined,
    against,
  });
  const key = keyOf(session, against, file.path);
  const known = diffs.get(key)?.diff;
  // The same object again, so that it is not drawn again.
  const same = known && known.digest === found.digest && known.patch === found.patch;
  const diff = same ? known : found;
  keep(diffs, key, { file, diff }, MOST_DIFFS);
  return diff;
}

function keep<T>(kept: Map<string, T>, key: string, value: T, most: number): void {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size > most) kept.delete(kept.keys().next().value ?? "");
}
