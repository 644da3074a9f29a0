// From what a person chose in the dialog to the sessions that are started. Pure.
import type { Session, Spec } from "../api/types";
import type { NewTemplate, Template } from "../state/library";
import { folderOf, type Sessions } from "../state/sessions";

export const LOCAL = "local";
const RECENT = 8;
/** Sessions at once: each is a process, and each costs. */
export const MOST_RUNS = 8;

/** What the dialog has; an empty text is nothing. */
export interface Choices {
  directory: string;
  machine: string;
  project: string;
  name: string;
  worktree: string;
  model: string;
  mode: string;
  effort: string;
  budget: string;
  policy: string;
  sandbox: string;
  /** For several at once. */
  copies: string;
  models: string;
}

export const NOTHING: Choices = {
  directory: "",
  machine: LOCAL,
  project: "",
  name: "",
  worktree: "",
  model: "",
  mode: "",
  effort: "",
  budget: "",
  policy: "",
  sandbox: "",
  copies: "1",
  models: "",
};

const TEXTS = ["name", "model", "mode", "effort", "worktree", "policy"] as const;
const SANDBOXES = ["off", "protect", "strict"] as const;

/** How one session is started. */
export function specOf(chosen: Choices): Spec {
  const spec: Spec = { directory: chosen.directory.trim() };
  if (chosen.machine !== LOCAL) spec.machine = chosen.machine;
  if (chosen.project) spec.project = chosen.project;
  for (const name of TEXTS) {
    const given = chosen[name].trim();
    if (given) spec[name] = given;
  }
  const sandbox = SANDBOXES.find((one) => one === chosen.sandbox);
  if (sandbox) spec.sandbox = sandbox;
  const budget = Number(chosen.budget);
  if (chosen.budget && budget > 0) spec.budget = { session_usd: budget };
  return spec;
}

/** The models that are compared; one entry, which may be empty, if nothing is. */
export function modelsOf(chosen: Choices): string[] {
  const given = chosen.models.split(/[,\s]+/).filter(Boolean);
  return given.length ? [...new Set(given)] : [chosen.model.trim()];
}

export function runsOf(chosen: Choices): number {
  const copies = Math.max(1, Math.floor(Number(chosen.copies) || 1));
  return modelsOf(chosen).length * copies;
}

/**
 * How all sessions are started: one, or each with a model, a name and a worktree of its own. `mark` makes
 * the branches of one start different from those of another.
 */
export function specsOf(chosen: Choices, mark: string): Spec[] {
  const count = runsOf(chosen);
  const base = specOf(chosen);
  if (count <= 1) return [withModel(base, modelsOf(chosen)[0] ?? "")];
  const models = modelsOf(chosen);
  const copies = count / models.length;
  const branch = chosen.worktree.trim() || `compare-${mark}`;
  const name = chosen.name.trim() || branch;
  return models.flatMap((model) =>
    Array.from({ length: copies }, (_, index) => {
      const parts = [model.replace(/[^\w.-]+/g, "-"), copies > 1 ? String(index + 1) : ""];
      const end = parts.filter(Boolean).join("-");
      return {
        ...withModel(base, model),
        name: end ? `${name} · ${end}` : name,
        worktree: end ? `${branch}-${end}` : branch,
      };
    }),
  );
}

function withModel(spec: Spec, model: string): Spec {
  return model ? { ...spec, model } : spec;
}

/** The folders of the newest sessions on a machine. */
export function recentFolders(sessions: Sessions, machine: string): string[] {
  const newest = [...sessions.values()]
    .filter((session) => machineOf(session) === machine && !session.lineage.length)
    .sort((a, b) => b.updated - a.updated);
  const folders = newest.map((session) => session.spec.directory || folderOf(session));
  return [...new Set(folders)].slice(0, RECENT);
}

/** The hub writes its own machine as nothing, as an empty name, or by its name. */
const machineOf = (session: Session): string =>
  session.spec.machine || (session.machine && session.machine !== LOCAL ? session.machine : LOCAL);

/** What a template chooses. */
export function choicesOf(template: Template): Choices {
  const { spec } = template;
  return {
    ...NOTHING,
    directory: spec.directory ?? "",
    machine: spec.machine ?? LOCAL,
    project: spec.project ?? "",
    worktree: spec.worktree ?? "",
    model: spec.model ?? "",
    mode: spec.mode ?? "",
    effort: spec.effort ?? "",
    policy: spec.policy ?? "",
    sandbox: spec.sandbox ?? "",
    budget: spec.budget?.session_usd ? String(spec.budget.session_usd) : "",
  };
}

/** Whether something is chosen that the dialog shows below “More”. */
export function setsMore(chosen: Choices): boolean {
  const hidden = ["worktree", "model", "mode", "effort", "policy", "sandbox", "budget"] as const;
  return hidden.some((name) => chosen[name] !== "") || chosen.machine !== LOCAL;
}

/** The same as a template. The session's name is of one session, and not kept. */
export function templateOf(
  chosen: Choices,
  name: string,
  prompt: string,
  shared: boolean,
): NewTemplate {
  const { name: _, ...spec } = specOf(chosen);
  return { name, prompt, shared, spec: spec as NewTemplate["spec"] };
}
