import { type FormEvent, useCallback, useState } from "react";
import { useLocation } from "wouter";
import { get, wordsOf } from "../api/http";
import type { components } from "../api/schema";
import type { Machine, Spec } from "../api/types";
import { Pictures, usePictures } from "../session/pictures";
import { folderOf } from "../state/fleet";
import { store, useDeck } from "../state/store";
import { newId } from "../ui/format";
import { Modal } from "../ui/Modal";
import { useHub } from "../ui/useHub";
import { Directories } from "./Directories";

type Project = components["schemas"]["ProjectShape"];

const MODES = ["default", "plan", "acceptEdits", "dontAsk"];
const EFFORTS = ["low", "medium", "high", "max"];
const MODELS = ["opus", "sonnet", "haiku"];
const TEXTS = ["name", "model", "mode", "effort", "worktree", "policy"] as const;
const LOCAL = "local";
const RECENT = 8;

/** Machines, projects and policies that a session can be begun with. */
async function choices() {
  const [machines, projects, policy] = await Promise.all([
    get<{ machines: Machine[] }>("/api/machines"),
    get<{ projects: Project[] }>("/api/projects"),
    get<{ names: string[] }>("/api/policy"),
  ]);
  return { ...machines, ...projects, policies: policy.names };
}

/** The dialog that begins a session. */
export function NewSession({ onClose }: { onClose: () => void }) {
  const fleet = useDeck((deck) => deck.fleet);
  const there = useHub(useCallback(choices, []));
  const [machine, setMachine] = useState(LOCAL);
  const recent = recentFolders(fleet, machine);
  const [directory, setDirectory] = useState(recent[0] ?? "");
  const [project, setProject] = useState("");
  const [browsing, setBrowsing] = useState(false);
  const [, go] = useLocation();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const pictures = usePictures();
  const projects = there.value?.projects ?? [];
  const chosen = projects.find((one) => one.name === project)?.defaults;
  const usual = (name: "model" | "mode" | "effort" | "policy", other: string): string =>
    chosen?.[name] ? `${chosen[name]}, as the project has it` : other;

  const take = (name: string): void => {
    setProject(name);
    const found = projects.find((one) => one.name === name)?.defaults;
    if (!found) return;
    setDirectory(found.directory);
    setMachine(found.machine ?? LOCAL);
  };
  const begin = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string): string => String(form.get(name) ?? "").trim();
    const spec: Partial<Spec> = { directory: directory.trim() };
    if (machine !== LOCAL) spec.machine = machine;
    if (project) spec.project = project;
    for (const name of TEXTS) if (given(name)) spec[name] = given(name);
    if (given("budget")) spec.budget = { session_usd: Number(given("budget")) };
    const session = newId();
    setBusy(true);
    try {
      const prompt = pictures.content(given("prompt"));
      await store.command("session.create", {
        spec,
        session,
        ...(prompt ? { prompt, prompt_id: newId() } : {}),
      });
      go(`/s/${session}`);
      onClose();
    } catch (failure) {
      setError(wordsOf(failure));
      setBusy(false);
    }
  };
  return (
    <Modal title="New session" onClose={onClose}>
      <form
        className="new-session"
        onSubmit={(event) => void begin(event)}
        onPaste={pictures.onPaste}
        onDrop={pictures.onDrop}
        onDragOver={(event) => event.preventDefault()}
      >
        <div className="columns">
          <label className="field">
            <span>Machine</span>
            <select value={machine} onChange={(event) => setMachine(event.target.value)}>
              {machineNames(there.value?.machines ?? []).map(([name, connected]) => (
                <option key={name} value={name}>
                  {connected ? name : `${name} (not connected)`}
                </option>
              ))}
            </select>
          </label>
          {projects.length > 0 && (
            <label className="field">
              <span>Project</span>
              <select value={project} onChange={(event) => take(event.target.value)}>
                <option value="">none</option>
                {projects.map((one) => (
                  <option key={one.name}>{one.name}</option>
                ))}
              </select>
            </label>
          )}
        </div>
        <div className="place">
          <label className="field">
            <span>Directory</span>
            <input
              required
              value={directory}
              placeholder="/home/you/project"
              spellCheck={false}
              onChange={(event) => setDirectory(event.target.value)}
            />
          </label>
          <button type="button" aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>
            Browse
          </button>
        </div>
        {browsing && (
          <Directories
            machine={machine}
            at={directory || undefined}
            onGo={(path) => setDirectory(path ?? "")}
          />
        )}
        {!browsing && recent.length > 0 && (
          <section className="buttons" aria-label="Recent projects">
            {recent.map((folder) => (
              <button
                key={folder}
                type="button"
                className="small"
                title={folder}
                aria-pressed={folder === directory}
                onClick={() => setDirectory(folder)}
              >
                {folder.split("/").filter(Boolean).at(-1) ?? "/"}
              </button>
            ))}
          </section>
        )}
        <label className="field">
          <span>First prompt</span>
          <textarea name="prompt" rows={4} placeholder="What is to be done?" />
        </label>
        <Pictures pictures={pictures} />
        <label className="button ghost small add-picture">
          Picture
          <input
            type="file"
            className="visually-hidden"
            accept="image/png,image/jpeg,image/gif,image/webp"
            multiple
            onChange={(event) => pictures.add(event.target.files ?? [])}
          />
        </label>
        <div className="columns">
          <label className="field">
            <span>Name</span>
            <input name="name" placeholder="the folder's" />
          </label>
          <label className="field">
            <span>Worktree for branch</span>
            <input name="worktree" placeholder="none" spellCheck={false} />
          </label>
          <label className="field">
            <span>Model</span>
            <input name="model" list="models" placeholder={usual("model", "as the CLI has it")} />
          </label>
          <Choice name="mode" label="Mode" empty={usual("mode", "as the CLI has it")} of={MODES} />
          <Choice
            name="effort"
            label="Effort"
            empty={usual("effort", "as the CLI has it")}
            of={EFFORTS}
          />
          <label className="field">
            <span>Budget in dollars</span>
            <input name="budget" type="number" min="0.01" step="0.01" placeholder="none" />
          </label>
          <Choice
            name="policy"
            label="Policy"
            empty={usual("policy", "the hub's own")}
            of={there.value?.policies ?? []}
          />
        </div>
        <datalist id="models">
          {MODELS.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        {(error || there.error) && (
          <p className="error" role="alert">
            {error || there.error}
          </p>
        )}
        <div className="buttons">
          <button type="submit" className="primary" disabled={busy}>
            {busy ? "Beginning …" : "Begin"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  );
}

function Choice(props: { name: string; label: string; empty: string; of: readonly string[] }) {
  return (
    <label className="field">
      <span>{props.label}</span>
      <select name={props.name} defaultValue="">
        <option value="">{props.empty}</option>
        {props.of.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

/** The machines by name, this one first, and whether each is connected. */
function machineNames(machines: readonly Machine[]): [string, boolean][] {
  const others = machines.filter((machine) => machine.name !== LOCAL);
  const local = machines.find((machine) => machine.name === LOCAL);
  return [
    [LOCAL, local?.connected ?? true],
    ...others.map((machine): [string, boolean] => [machine.name, machine.connected]),
  ];
}

function recentFolders(
  fleet: ReadonlyMap<string, Parameters<typeof folderOf>[0]>,
  machine: string,
): string[] {
  const sessions = [...fleet.values()]
    .filter((session) => (session.machine ?? LOCAL) === machine)
    .sort((a, b) => b.updated - a.updated);
  return [...new Set(sessions.map((session) => session.spec.directory || folderOf(session)))].slice(
    0,
    RECENT,
  );
}
