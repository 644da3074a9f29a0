import { Plus, X } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { get, post, put } from "../../api/http";
import type { components } from "../../api/schema";
import { text as catalogue } from "../../text";
import { Confirm } from "../../ui/Confirm";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { Icon } from "../../ui/Icon";
import { IconButton } from "../../ui/IconButton";
import { Marked } from "../../ui/Marked";
import { ACTIONS, Table } from "../../ui/Table";
import { type Action, useAction } from "../../ui/useAction";
import styles from "./policy.module.css";
import { DAY, Period, ReplayResult } from "./Replay";
import { Verdict } from "./Verdict";
import { Warnings } from "./Warnings";

type File = components["schemas"]["PolicyFileText"];
type Check = components["schemas"]["PolicyChecked"];
type Explanation = components["schemas"]["Explanation"];
type Replayed = components["schemas"]["Replay"];

const words = catalogue.policy.edit;
const GLOBAL = "policy.toml";

interface Sample {
  tool: string;
  argument: string;
  now?: string;
  drafted?: string;
}
const SAMPLES: readonly Sample[] = [
  { tool: "Bash", argument: "git push --force" },
  { tool: "Bash", argument: "npm test" },
  { tool: "Read", argument: ".env" },
];

/** A policy file, edited: checked and tried against calls before it is put in force. For owners. */
export function Edit({ files, onSaved }: { files: readonly string[]; onSaved: () => void }) {
  const [name, setName] = useState(GLOBAL);
  const [file, setFile] = useState<File>();
  const [draft, setDraft] = useState("");
  const [check, setCheck] = useState<Check>();
  const [replayed, setReplayed] = useState<Replayed>();
  const [confirming, setConfirming] = useState(false);
  const [saved, setSaved] = useState(false);
  const action = useAction();
  const { run } = action;
  const path = `/api/policy/files/${encodeURIComponent(name)}`;
  const load = useCallback(
    () =>
      run(async () => {
        const found = await get<File>(path);
        setFile(found);
        setDraft(found.text);
        setCheck(undefined);
        setReplayed(undefined);
      }),
    [run, path],
  );
  useEffect(() => void load(), [load]);
  const changed = file !== undefined && draft !== file.text;
  const write = (next: string): void => {
    setDraft(next);
    setCheck(undefined);
    setReplayed(undefined);
    setSaved(false);
  };
  const verify = (): Promise<boolean> =>
    run(async () => setCheck(await post<Check>("/api/policy/check", { text: draft })));
  const save = (): Promise<boolean> =>
    run(async () => {
      const made = await put<File>(path, { text: draft, version: file?.version ?? "" });
      setFile(made);
      setSaved(true);
      onSaved();
    });
  return (
    <>
      <section className={css.card.card} aria-label={words.text}>
        <label className={css.field.field}>
          <span>{words.file}</span>
          <select value={name} onChange={(event) => setName(event.target.value)}>
            <option value={GLOBAL}>{words.forAll}</option>
            {files
              .filter((one) => one !== GLOBAL)
              .map((one) => (
                <option key={one}>{one}</option>
              ))}
          </select>
        </label>
        <label className={css.field.field}>
          <span>{words.text}</span>
          <textarea
            className={styles.editor}
            rows={18}
            spellCheck={false}
            value={draft}
            disabled={!file}
            onChange={(event) => write(event.target.value)}
          />
        </label>
        {file && (
          <p className={css.texts.muted}>
            {words.path(file.path)} {!file.version && words.newFile}
          </p>
        )}
        <ErrorText error={action.error} />
        <Checked check={check} />
        <p role="status" className={css.texts.muted}>
          {saved ? words.saved : changed ? words.unsaved : ""}
        </p>
        <div className={css.layout.buttons}>
          <button type="button" disabled={action.busy} onClick={() => void verify()}>
            {words.check}
          </button>
          <button
            type="button"
            className={css.button.primary}
            disabled={action.busy || !changed || check?.good === false}
            onClick={() => void verify().then((done) => done && setConfirming(true))}
          >
            {words.save}
          </button>
          <button
            type="button"
            className={css.button.ghost}
            disabled={action.busy}
            onClick={() => void load()}
          >
            {words.reload}
          </button>
          {file && !file.version && !draft && (
            <button type="button" onClick={() => write(words.example)}>
              {words.start}
            </button>
          )}
        </div>
      </section>
      <Samples draft={draft} />
      <PastCalls draft={draft} found={replayed} onFound={setReplayed} />
      {confirming && check?.good && (
        <Confirm
          title={words.confirmTitle}
          verb={words.save}
          onConfirm={() => void save()}
          onClose={() => setConfirming(false)}
        >
          <p>{words.confirm(name)}</p>
          {!replayed && <p className={css.texts.muted}>{words.confirmUntried}</p>}
        </Confirm>
      )}
    </>
  );
}

function Checked({ check }: { check: Check | undefined }) {
  if (!check) return null;
  return (
    <>
      <div className={css.note.note} data-tone={check.good ? "good" : "bad"} role="alert">
        {check.good && <p>{words.good(check.rules, check.examples)}</p>}
        {check.flaws.map((flaw) => (
          <p key={`${flaw.line}:${flaw.text}`}>{catalogue.policy.flaw(flaw.line, flaw.text)}</p>
        ))}
      </div>
      <Warnings warnings={check.warnings} />
    </>
  );
}

/** Calls that a person thinks of, decided by what is in force and by the draft. */
function Samples({ draft }: { draft: string }) {
  const [samples, setSamples] = useState(SAMPLES);
  const [tool, setTool] = useState("Bash");
  const [argument, setArgument] = useState("");
  const action = useAction();
  const decide = async (sample: Sample, text?: string): Promise<string> => {
    const { tool, argument } = sample;
    const asked = text === undefined ? { tool, argument } : { tool, argument, text };
    return (await post<Explanation>("/api/policy/explain", asked)).verdict;
  };
  const tryAll = (): Promise<boolean> =>
    action.run(async () => {
      const found: Sample[] = [];
      // One after the other: each person has one turn at a time.
      for (const sample of samples) {
        const now = await decide(sample);
        found.push({ ...sample, now, drafted: await decide(sample, draft) });
      }
      setSamples(found);
    });
  const add = (): void => {
    if (!argument.trim()) return;
    setSamples([...samples, { tool, argument: argument.trim() }]);
    setArgument("");
  };
  return (
    <section className={css.card.card} aria-label={words.tryTitle}>
      <h2>{words.tryTitle}</h2>
      <p className={css.texts.muted}>{words.tryHint}</p>
      <Table heads={[...words.tryHeads, ACTIONS]}>
        {samples.map((sample, index) => (
          <tr key={index}>
            <td>
              {sample.tool}{" "}
              <code>
                <Marked text={sample.argument} code />
              </code>
            </td>
            <td>{sample.now && <Verdict word={sample.now} />}</td>
            <td>{sample.drafted && <Verdict word={sample.drafted} />}</td>
            <td>
              <IconButton
                icon={X}
                label={words.remove(sample.argument)}
                onClick={() => setSamples(samples.filter((_, at) => at !== index))}
              />
            </td>
          </tr>
        ))}
      </Table>
      <form
        className={styles.sample}
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <input
          aria-label={words.tool}
          value={tool}
          required
          onChange={(event) => setTool(event.target.value)}
        />
        <input
          aria-label={words.argument}
          placeholder={words.argument}
          value={argument}
          onChange={(event) => setArgument(event.target.value)}
        />
        <button type="submit">
          <Icon of={Plus} size={14} />
          {words.add}
        </button>
      </form>
      <ErrorText error={action.error} />
      <div className={css.layout.buttons}>
        <button type="button" disabled={action.busy} onClick={() => void tryAll()}>
          {words.run}
        </button>
      </div>
    </section>
  );
}

/** Calls of the past, decided again by the draft. */
function PastCalls(props: {
  draft: string;
  found: Replayed | undefined;
  onFound: (found: Replayed) => void;
}) {
  const [days, setDays] = useState("30");
  const action: Action = useAction();
  const replay = (): Promise<boolean> =>
    action.run(async () => {
      const since = Date.now() - Number(days) * DAY;
      props.onFound(await post<Replayed>("/api/policy/replay", { text: props.draft, since }));
    });
  return (
    <section className={css.card.card} aria-label={words.pastTitle}>
      <h2>{words.pastTitle}</h2>
      <p className={css.texts.muted}>{words.pastHint}</p>
      <div className={css.layout.buttons}>
        <Period value={days} onChange={setDays} />
        <button type="button" disabled={action.busy} onClick={() => void replay()}>
          {catalogue.policy.replay.run}
        </button>
      </div>
      <ErrorText error={action.error} />
      {props.found && <ReplayResult result={props.found} />}
    </section>
  );
}
