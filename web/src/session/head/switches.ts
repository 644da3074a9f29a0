// What can be switched in a session, by what its CLI has told of itself. Pure.
import type { Session } from "../../api/types";

type Model = NonNullable<NonNullable<Session["offers"]>["models"]>[number];

const MODES = ["default", "acceptEdits", "plan", "dontAsk"];
/** The first version that has the mode `auto`. */
const AUTO_SINCE = [2, 1, 91];

/** The offer for the model that is used, if the CLI made one. */
export function modelOffer(session: Session): Model | undefined {
  const models = session.offers?.models ?? [];
  return (
    models.find((one) => one.model === session.model || one.resolved === session.model) ??
    models.find((one) => one.model === "default")
  );
}

/**
 * The modes that this session can be switched to. `auto` needs a version and a model that have it, and
 * bypassing needs a session that was started for it. The mode that holds is always among them.
 */
export function modesOf(session: Session): string[] {
  const offer = modelOffer(session);
  const modes = [...MODES];
  if (offer?.auto && isSince(session.version, AUTO_SINCE)) modes.push("auto");
  if (session.spec.skip_permissions) modes.push("bypassPermissions");
  return [...new Set([...modes, ...(session.mode ? [session.mode] : [])])];
}

/** The effort levels of the model that is used; none if it has none. */
export function effortsOf(session: Session): string[] {
  const levels = modelOffer(session)?.efforts ?? [];
  return levels.length ? [...new Set(["auto", ...levels])] : [];
}

/** A model for people: without the maker's name. */
export function modelName(session: Session, model: string | null): string {
  const offer = session.offers?.models?.find(
    (one) => one.model === model || one.resolved === model,
  );
  if (offer?.name && offer.model !== "default") return offer.name;
  return (model ?? "").replace(/^claude-/, "");
}

function isSince(version: string | null, since: readonly number[]): boolean {
  const parts = (version ?? "").split(".").map(Number);
  for (const [index, least] of since.entries()) {
    const part = parts[index];
    if (part === undefined || Number.isNaN(part)) return false;
    if (part !== least) return part > least;
  }
  return true;
}
