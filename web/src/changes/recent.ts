// The list of changes that was seen last: a review opens with it, and is then read again.
import { get, sessionPath } from "../api/http";
import type { Against, Changes } from "./types";

const MOST = 20;
const recent = new Map<string, Changes>();
const keyOf = (session: string, against: Against): string => `${against}:${session}`;

export const recentChanges = (session: string, against: Against): Changes | undefined =>
  recent.get(keyOf(session, against));

export async function loadChanges(session: string, against: Against): Promise<Changes> {
  const found = await get<Changes>(sessionPath(session, "/diff"), { against, text_limit: 0 });
  const key = keyOf(session, against);
  recent.delete(key);
  recent.set(key, found);
  if (recent.size > MOST) recent.delete(recent.keys().next().value ?? "");
  return found;
}
