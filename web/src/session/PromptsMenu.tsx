import { BookMarked, Trash2 } from "lucide-react";
import { type FormEvent, useEffect, useState } from "react";
import {
  loadLibrary,
  removePrompt,
  type SavedPrompt,
  savePrompt,
  sentPrompts,
  useLibrary,
} from "../state/library";
import { text as words } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import styles from "./composer.module.css";

/** The button that opens the library of prompts and the earlier prompts. */
export function PromptsMenu(props: {
  /** What is in the composer now. */
  text: string;
  /** The prompts of this session, the newest first. */
  earlier: readonly string[];
  onUse: (text: string) => void;
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <IconButton
        icon={BookMarked}
        label={words.composer.prompts}
        className={`${css.button.ghost} ${css.button.small}`}
        aria-expanded={open}
        onClick={() => setOpen(true)}
      />
      {open && <Prompts {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function Prompts(props: {
  text: string;
  earlier: readonly string[];
  onUse: (text: string) => void;
  onClose: () => void;
}) {
  const library = useLibrary();
  const action = useAction();
  const run = action.run;
  const [filter, setFilter] = useState("");
  useEffect(() => void run(loadLibrary), [run]);
  const wanted = filter.trim().toLowerCase();
  const fits = (...texts: string[]): boolean =>
    texts.some((one) => one.toLowerCase().includes(wanted));
  const saved = (library?.prompts ?? []).filter((one) => fits(one.name, one.text));
  const earlier = [...new Set([...props.earlier, ...sentPrompts()])]
    .filter((one) => one && fits(one))
    .slice(0, 100);
  const use = (text: string): void => {
    props.onUse(text);
    props.onClose();
  };
  return (
    <Dialog title={words.composer.promptsTitle} onClose={props.onClose}>
      <div className={styles.prompts}>
        <input
          type="search"
          value={filter}
          aria-label={words.composer.filter}
          placeholder={words.composer.filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <section aria-label={words.composer.library}>
          <h3>{words.composer.library}</h3>
          <ul>
            {saved.map((one) => (
              <Saved
                key={one.id}
                prompt={one}
                onUse={use}
                onRemove={() => void run(() => removePrompt(one.id))}
              />
            ))}
          </ul>
          {library && !saved.length && (
            <p className={css.texts.muted}>
              {library.prompts.length ? words.composer.nothingMatches : words.composer.noLibrary}
            </p>
          )}
          {props.text && <SaveForm text={props.text} onSave={run} />}
        </section>
        <section aria-label={words.composer.history}>
          <h3>{words.composer.history}</h3>
          <ul>
            {earlier.map((one) => (
              <li key={one}>
                <button type="button" className={styles.prompt} onClick={() => use(one)}>
                  <span className={styles.clamp}>{one}</span>
                </button>
              </li>
            ))}
          </ul>
          {!earlier.length && (
            <p className={css.texts.muted}>
              {wanted ? words.composer.nothingMatches : words.composer.noHistory}
            </p>
          )}
        </section>
        <ErrorText error={action.error} />
      </div>
    </Dialog>
  );
}

function Saved(props: {
  prompt: SavedPrompt;
  onUse: (text: string) => void;
  onRemove: () => void;
}) {
  const { prompt } = props;
  return (
    <li>
      <button type="button" className={styles.prompt} onClick={() => props.onUse(prompt.text)}>
        <strong>
          <Marked text={prompt.name} />
        </strong>{" "}
        <span className={css.texts.muted}>
          {prompt.shared ? words.composer.shared(prompt.by) : words.composer.private}
        </span>
        <span className={styles.clamp}>
          <Marked text={prompt.text} />
        </span>
      </button>
      {prompt.may_change && (
        <IconButton
          icon={Trash2}
          label={words.composer.remove1(prompt.name)}
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={props.onRemove}
        />
      )}
    </li>
  );
}

function SaveForm(props: {
  text: string;
  onSave: (action: () => Promise<unknown>) => Promise<boolean>;
}) {
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    if (!name.trim()) return;
    void props
      .onSave(() => savePrompt(name.trim(), props.text, shared))
      .then((done) => {
        if (done) setName("");
      });
  };
  return (
    <form className={styles.saveForm} onSubmit={save}>
      <input
        value={name}
        maxLength={100}
        aria-label={words.composer.saveName}
        placeholder={words.composer.saveName}
        onChange={(event) => setName(event.target.value)}
      />
      <label className={css.field.option}>
        <input
          type="checkbox"
          checked={shared}
          onChange={(event) => setShared(event.target.checked)}
        />{" "}
        {words.composer.share}
      </label>
      <button type="submit" disabled={!name.trim()}>
        {words.composer.saveThis}
      </button>
    </form>
  );
}
