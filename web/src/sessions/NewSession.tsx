import { type FormEvent, useCallback, useState } from "react";
import { useLocation } from "wouter";
import { get } from "../api/http";
import type { components } from "../api/schema";
import type { Machine, Spec } from "../api/types";
import { AttachImage } from "../session/AttachImage";
import { ImageList, useImages } from "../session/images";
import { MODES } from "../session/Switches";
import { SANDBOX_MODES } from "../session/sandbox";
import { lookup } from "../state/lookup";
import { folderOf, type Sessions } from "../state/sessions";
import { store, useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { newId } from "../ui/format";
import { Modal } from "../ui/Modal";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import { DirectoryBrowser } from "./DirectoryBrowser";
import styles from "./newSession.module.css";

type Project = components["schemas"]["ProjectShape"];

const SAFE_MODES = ["default", "plan", "acceptEdits", "dontAsk"];
const EFFORTS = ["low", "medium", "high", "max"];
const MODELS = ["opus", "sonnet", "haiku"];
const TEXTS = ["name", "model", "mode", "effort", "worktree", "policy"] as const;
const LOCAL = "local";
const RECENT = 8;

/** The machines, projects and policies that a session can be started with. */
async function choices() {
  const [machines, projects, policy] = await Promise.all([
    get<{ machines: Machine[] }>("/api/machines"),
    get<{ projects: Project[] }>("/api/projects"),
    get<{ names: string[] }>("/api/policy"),
  ]);
  return { ...machines, ...projects, policies: policy.names };
}

/** The dialog that starts a session. */
export function NewSession({ onClose }: { onClose: () => void }) {
  const sessions = useAppState((state) => state.sessions);
  const there = useQuery(useCallback(choices, []));
  const [machine, setMachine] = useState(LOCAL);
  const recent = recentFolders(sessions, machine);
  const [directory, setDirectory] = useState(recent[0] ?? "");
  const [project, setProject] = useState("");
  const [browsing, setBrowsing] = useState(false);
  const [, go] = useLocation();
  const action = useAction();
  const images = useImages();
  const projects = there.value?.projects ?? [];
  const chosen = projects.find((one) => one.name === project)?.defaults;
  const defaultOf = (name: "model" | "mode" | "effort" | "policy", other: string): string =>
    chosen?.[name] ? `${chosen[name]} (project default)` : other;

  const chooseProject = (name: string): void => {
    setProject(name);
    const found = projects.find((one) => one.name === name)?.defaults;
    if (!found) return;
    setDirectory(found.directory);
    setMachine(found.machine ?? LOCAL);
  };
  const start = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string): string => String(form.get(name) ?? "").trim();
    const spec: Spec = { directory: directory.trim() };
    if (machine !== LOCAL) spec.machine = machine;
    if (project) spec.project = project;
    for (const name of TEXTS) if (given(name)) spec[name] = given(name);
    const sandbox = given("sandbox");
    if (sandbox === "off" || sandbox === "protect" || sandbox === "strict") spec.sandbox = sandbox;
    if (given("budget")) spec.budget = { session_usd: Number(given("budget")) };
    const session = newId();
    const prompt = images.content(given("prompt"));
    void action.run(async () => {
      await store.command({
        command: "session.create",
        spec,
        session,
        ...(prompt ? { prompt, prompt_id: newId() } : {}),
      });
      go(`/s/${session}`);
      onClose();
    });
  };
  return (
    <Modal title="New session" onClose={onClose}>
      <form
        className={styles.form}
        onSubmit={start}
        onPaste={images.onPaste}
        onDrop={images.onDrop}
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
              <select value={project} onChange={(event) => chooseProject(event.target.value)}>
                <option value="">none</option>
                {projects.map((one) => (
                  <option key={one.name}>{one.name}</option>
                ))}
              </select>
            </label>
          )}
        </div>
        <div className={styles.place}>
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
          <DirectoryBrowser
            machine={machine}
            at={directory || undefined}
            onGo={(path) => setDirectory(path ?? "")}
          />
        )}
        {!browsing && recent.length > 0 && (
          <section className="buttons" aria-label="Recent folders">
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
          <textarea name="prompt" rows={4} placeholder="What should the agent do?" />
        </label>
        <ImageList images={images} />
        <AttachImage onFiles={images.add} />
        <div className="columns">
          <label className="field">
            <span>Name</span>
            <input name="name" placeholder="folder name" />
          </label>
          <label className="field">
            <span>Worktree for branch</span>
            <input name="worktree" placeholder="none" spellCheck={false} />
          </label>
          <label className="field">
            <span>Model</span>
            <input
              name="model"
              list="models"
              placeholder={defaultOf("model", "Claude Code default")}
            />
          </label>
          <Choice
            name="mode"
            label="Mode"
            empty={defaultOf("mode", "Claude Code default")}
            of={SAFE_MODES}
            labels={MODES}
          />
          <Choice
            name="effort"
            label="Effort"
            empty={defaultOf("effort", "Claude Code default")}
            of={EFFORTS}
          />
          <label className="field">
            <span>Budget in US dollars</span>
            <input name="budget" type="number" min="0.01" step="0.01" placeholder="none" />
          </label>
          <Choice
            name="policy"
            label="Policy"
            empty={defaultOf("policy", "hub default")}
            of={there.value?.policies ?? []}
          />
          <Choice
            name="sandbox"
            label="Sandbox"
            empty={
              chosen?.sandbox?.mode ? `${chosen.sandbox.mode} (project default)` : "hub default"
            }
            of={Object.keys(SANDBOX_MODES)}
            labels={SANDBOX_MODES}
          />
        </div>
        <datalist id="models">
          {MODELS.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        <ErrorText error={action.error || there.error} />
        <div className="buttons">
          <button type="submit" className="primary" disabled={action.busy}>
            {action.busy ? "Starting …" : "Start"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  );
}

function Choice(props: {
  name: string;
  label: string;
  empty: string;
  of: readonly string[];
  /** Words for the values; a value without one is shown as it is. */
  labels?: Record<string, string>;
}) {
  return (
    <label className="field">
      <span>{props.label}</span>
      <select name={props.name} defaultValue="">
        <option value="">{props.empty}</option>
        {props.of.map((one) => (
          <option key={one} value={one}>
            {lookup(props.labels ?? {}, one) ?? one}
          </option>
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

function recentFolders(sessions: Sessions, machine: string): string[] {
  const newest = [...sessions.values()]
    .filter((session) => (session.machine ?? LOCAL) === machine)
    .sort((a, b) => b.updated - a.updated);
  return [...new Set(newest.map((session) => session.spec.directory || folderOf(session)))].slice(
    0,
    RECENT,
  );
}
