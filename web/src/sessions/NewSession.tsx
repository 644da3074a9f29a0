import { type FormEvent, useCallback, useRef, useState } from "react";
import { useLocation } from "wouter";
import { get } from "../api/http";
import type { components } from "../api/schema";
import type { Machine } from "../api/types";
import { AttachFiles, AttachmentList, useAttachments } from "../session/Attachments";
import { Dictate } from "../session/Dictate";
import { PromptsMenu } from "../session/PromptsMenu";
import { SANDBOX_MODES } from "../session/sandbox";
import { rememberPrompt } from "../state/library";
import { lookup } from "../state/lookup";
import { store, useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { newId } from "../ui/format";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import { DirectoryBrowser } from "./DirectoryBrowser";
import { DiskSessions } from "./DiskSessions";
import styles from "./newSession.module.css";
import {
  type Choices,
  choicesOf,
  LOCAL,
  MOST_RUNS,
  NOTHING,
  recentFolders,
  runsOf,
  setsMore,
  specsOf,
} from "./newSessionSpec";
import { SaveTemplate, Templates } from "./Templates";

type Project = components["schemas"]["ProjectShape"];

const SAFE_MODES = ["default", "plan", "acceptEdits", "dontAsk"];
const EFFORTS = ["low", "medium", "high", "max"];
const MODELS = ["opus", "sonnet", "haiku"];
const words = text.newSession;

/** The machines, projects and policies that a session can be started with. */
async function choices() {
  const [machines, projects, policy] = await Promise.all([
    get<{ machines: Machine[] }>("/api/machines"),
    get<{ projects: Project[] }>("/api/projects"),
    get<{ names: string[] }>("/api/policy"),
  ]);
  return { ...machines, ...projects, policies: policy.names };
}

/** The dialog that starts a session, or continues one that the CLI has on disk. */
export function NewSession({ onClose }: { onClose: () => void }) {
  const [way, setWay] = useState<"fresh" | "disk">("fresh");
  const prompt = useRef<HTMLTextAreaElement>(null);
  return (
    <Dialog title={words.title} size="l" onClose={onClose} initialFocus={prompt} keepOpen>
      <fieldset className={styles.ways}>
        <legend className={css.texts.visuallyHidden}>{words.ways}</legend>
        {(["fresh", "disk"] as const).map((one) => (
          <button key={one} type="button" aria-pressed={way === one} onClick={() => setWay(one)}>
            {one === "fresh" ? words.fresh : words.continued}
          </button>
        ))}
      </fieldset>
      {way === "fresh" ? (
        <Fresh onClose={onClose} field={prompt} />
      ) : (
        <DiskSessions onClose={onClose} />
      )}
    </Dialog>
  );
}

function Fresh(props: { onClose: () => void; field: React.RefObject<HTMLTextAreaElement | null> }) {
  const sessions = useAppState((state) => state.sessions);
  const there = useQuery(useCallback(choices, []));
  const [chosen, setChosen] = useState<Choices>(() => ({
    ...NOTHING,
    directory: recentFolders(sessions, LOCAL)[0] ?? "",
  }));
  const [prompt, setPrompt] = useState("");
  const [more, setMore] = useState(false);
  const [note, setNote] = useState("");
  const [, go] = useLocation();
  const action = useAction();
  const attachments = useAttachments();
  const change = (given: Partial<Choices>): void =>
    setChosen((before) => ({ ...before, ...given }));
  const runs = runsOf(chosen);
  const start = (event: FormEvent): void => {
    event.preventDefault();
    if (attachments.reading) return;
    const content = attachments.content(prompt.trim());
    void action.run(async () => {
      const made = await startAll(chosen, content);
      rememberPrompt(prompt.trim());
      props.onClose();
      const path = made.map((id) => `s=${encodeURIComponent(id)}`).join("&");
      go(made.length === 1 ? `/s/${made[0]}` : `/compare?${path}`);
    });
  };
  return (
    <form
      className={styles.form}
      onSubmit={start}
      onPaste={attachments.onPaste}
      onDrop={attachments.onDrop}
      onDragOver={(event) => event.preventDefault()}
    >
      <Templates
        onUse={(template) => {
          const next = choicesOf(template);
          setChosen({ ...next, directory: next.directory || chosen.directory });
          setPrompt(template.prompt);
          setMore(setsMore(next));
          setNote(setsMore(next) ? words.templateSets : "");
        }}
      />
      <label className={css.field.field}>
        <span>{words.prompt}</span>
        <textarea
          ref={props.field}
          value={prompt}
          rows={4}
          placeholder={words.promptPlaceholder}
          onChange={(event) => setPrompt(event.target.value)}
        />
      </label>
      <AttachmentList attachments={attachments} />
      <div className={css.layout.buttons}>
        <AttachFiles onFiles={attachments.add} />
        <PromptsMenu text={prompt.trim()} earlier={[]} onUse={setPrompt} />
        <Dictate onText={(said) => setPrompt((before) => `${before} ${said}`.trim())} />
      </div>
      <Place
        chosen={chosen}
        change={change}
        projects={there.value?.projects ?? []}
        recent={recentFolders(sessions, chosen.machine)}
      />
      <details
        className={styles.more}
        open={more}
        onToggle={(event) => setMore(event.currentTarget.open)}
      >
        <summary>{words.more}</summary>
        <More
          chosen={chosen}
          change={change}
          machines={there.value?.machines ?? []}
          policies={there.value?.policies ?? []}
          project={there.value?.projects.find((one) => one.name === chosen.project)}
        />
        <Several chosen={chosen} change={change} />
        <SaveTemplate chosen={chosen} prompt={prompt} />
      </details>
      {note && (
        <p className={css.note.note} role="status">
          {note}
        </p>
      )}
      <ErrorText error={action.error || there.error} />
      <div className={`${css.layout.buttons} ${styles.actions}`}>
        <button
          type="submit"
          className={css.button.primary}
          disabled={action.busy || attachments.reading}
        >
          {action.busy ? words.starting : runs > 1 ? words.startSeveral(runs) : words.start}
        </button>
        <button type="button" onClick={props.onClose}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}

/** Start all sessions; gives their ids. Throws an error that says how many were started. */
async function startAll(chosen: Choices, content: unknown): Promise<string[]> {
  if (runsOf(chosen) > MOST_RUNS) throw new Error(words.tooManyRuns(MOST_RUNS));
  if (runsOf(chosen) > 1 && content === undefined) throw new Error(words.needsPrompt);
  const specs = specsOf(chosen, newId().slice(-5).toLowerCase());
  const made: string[] = [];
  for (const spec of specs) {
    const session = newId();
    try {
      await store.command({
        command: "session.create",
        spec,
        session,
        ...(content === undefined ? {} : { prompt: content, prompt_id: newId() }),
      });
    } catch (failure) {
      if (!made.length || !(failure instanceof Error)) throw failure;
      throw new Error(words.startedSome(made.length, specs.length, failure.message));
    }
    made.push(session);
  }
  return made;
}

type Change = (given: Partial<Choices>) => void;

function Place(props: {
  chosen: Choices;
  change: Change;
  projects: readonly Project[];
  recent: readonly string[];
}) {
  const { chosen, change, projects, recent } = props;
  const [browsing, setBrowsing] = useState(false);
  const owned = new Set(projects.map((one) => one.defaults.directory));
  return (
    <section className={styles.where} aria-label={words.where}>
      {projects.length > 0 && (
        <fieldset className={styles.chips}>
          <legend className={css.texts.visuallyHidden}>{words.projects}</legend>
          {projects.map((one) => (
            <button
              key={one.name}
              type="button"
              title={one.defaults.directory}
              aria-pressed={chosen.project === one.name}
              onClick={() =>
                change(
                  chosen.project === one.name
                    ? { project: "" }
                    : {
                        project: one.name,
                        directory: one.defaults.directory,
                        machine: one.defaults.machine ?? LOCAL,
                      },
                )
              }
            >
              {one.name} <span className={styles.tag}>{words.project}</span>
            </button>
          ))}
        </fieldset>
      )}
      {recent.length > 0 && (
        <fieldset className={styles.chips}>
          <legend className={css.texts.visuallyHidden}>{words.recent}</legend>
          {recent
            .filter((folder) => !owned.has(folder))
            .map((folder) => (
              <button
                key={folder}
                type="button"
                title={folder}
                aria-pressed={!chosen.project && folder === chosen.directory}
                onClick={() => change({ directory: folder, project: "" })}
              >
                {folder.split("/").filter(Boolean).at(-1) ?? "/"}
              </button>
            ))}
        </fieldset>
      )}
      <div className={styles.place}>
        <label className={css.field.field}>
          <span>{words.directory}</span>
          <input
            required={!chosen.project}
            value={chosen.directory}
            placeholder={words.directoryPlaceholder}
            spellCheck={false}
            onChange={(event) => change({ directory: event.target.value })}
          />
        </label>
        <button type="button" aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>
          {words.browse}
        </button>
      </div>
      {browsing && (
        <DirectoryBrowser
          machine={chosen.machine}
          at={chosen.directory || undefined}
          onGo={(path) => change({ directory: path ?? "" })}
        />
      )}
    </section>
  );
}

function More(props: {
  chosen: Choices;
  change: Change;
  machines: readonly Machine[];
  policies: readonly string[];
  project: Project | undefined;
}) {
  const { chosen, change } = props;
  const defaults = props.project?.defaults;
  const defaultOf = (name: "model" | "mode" | "effort" | "policy", other: string): string =>
    defaults?.[name] ? words.projectDefault(defaults[name]) : other;
  const field = (name: keyof Choices, label: string, placeholder: string) => (
    <label className={css.field.field}>
      <span>{label}</span>
      <input
        value={chosen[name]}
        placeholder={placeholder}
        spellCheck={false}
        list={name === "model" ? "models" : undefined}
        onChange={(event) => change({ [name]: event.target.value })}
      />
    </label>
  );
  const choice = (
    name: keyof Choices,
    label: string,
    empty: string,
    of: readonly string[],
    labels: Record<string, string> = {},
  ) => (
    <label className={css.field.field}>
      <span>{label}</span>
      <select value={chosen[name]} onChange={(event) => change({ [name]: event.target.value })}>
        <option value="">{empty}</option>
        {of.map((one) => (
          <option key={one} value={one}>
            {lookup(labels, one) ?? one}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <div className={css.layout.columns}>
      <label className={css.field.field}>
        <span>{words.machine}</span>
        <select
          value={chosen.machine}
          onChange={(event) => change({ machine: event.target.value })}
        >
          {machineNames(props.machines, chosen.machine).map(([name, connected]) => (
            <option key={name} value={name}>
              {connected ? name : words.notConnected(name)}
            </option>
          ))}
        </select>
      </label>
      {field("name", words.name, words.folderName)}
      {field("worktree", words.worktree, words.none)}
      {field("model", words.model, defaultOf("model", words.cliDefault))}
      {choice(
        "mode",
        words.mode,
        defaultOf("mode", words.cliDefault),
        SAFE_MODES,
        text.session.modes,
      )}
      {choice("effort", words.effort, defaultOf("effort", words.cliDefault), EFFORTS)}
      <label className={css.field.field}>
        <span>{words.budget}</span>
        <input
          type="number"
          min="0.01"
          step="0.01"
          value={chosen.budget}
          placeholder={words.none}
          onChange={(event) => change({ budget: event.target.value })}
        />
      </label>
      {choice("policy", words.policy, defaultOf("policy", words.hubDefault), props.policies)}
      {choice(
        "sandbox",
        words.sandbox,
        defaults?.sandbox?.mode ? words.projectDefault(defaults.sandbox.mode) : words.hubDefault,
        Object.keys(SANDBOX_MODES),
        SANDBOX_MODES,
      )}
      <datalist id="models">
        {MODELS.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </div>
  );
}

function Several({ chosen, change }: { chosen: Choices; change: Change }) {
  return (
    <fieldset className={styles.several}>
      <legend>{words.several}</legend>
      <p className={css.texts.muted}>{words.severalHint}</p>
      <div className={css.layout.columns}>
        <label className={css.field.field}>
          <span>{words.copies}</span>
          <input
            type="number"
            min="1"
            max={MOST_RUNS}
            value={chosen.copies}
            onChange={(event) => change({ copies: event.target.value })}
          />
        </label>
        <label className={css.field.field}>
          <span>{words.models}</span>
          <input
            value={chosen.models}
            placeholder={words.modelsPlaceholder}
            spellCheck={false}
            onChange={(event) => change({ models: event.target.value })}
          />
        </label>
      </div>
    </fieldset>
  );
}

/** The machines by name, this one first, and whether each is connected. */
function machineNames(machines: readonly Machine[], chosen: string): [string, boolean][] {
  const others = machines.filter((machine) => machine.name !== LOCAL);
  const local = machines.find((machine) => machine.name === LOCAL);
  const known: [string, boolean][] = [
    [LOCAL, local?.connected ?? true],
    ...others.map((machine): [string, boolean] => [machine.name, machine.connected]),
  ];
  return known.some(([name]) => name === chosen) ? known : [...known, [chosen, false]];
}
