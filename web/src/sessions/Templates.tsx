import { Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import {
  loadLibrary,
  removeTemplate,
  saveTemplate,
  type Template,
  useLibrary,
} from "../state/library";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { IconButton } from "../ui/IconButton";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import styles from "./newSession.module.css";
import { type Choices, templateOf } from "./newSessionSpec";

const words = text.newSession;

/** The templates, as chips. One fills the form; nothing is started by it. */
export function Templates({ onUse }: { onUse: (template: Template) => void }) {
  const library = useLibrary();
  const action = useAction();
  const run = action.run;
  useEffect(() => void run(loadLibrary), [run]);
  const templates = library?.templates ?? [];
  if (!templates.length) return <ErrorText error={action.error} />;
  return (
    <fieldset className={styles.chips}>
      <legend className={css.texts.visuallyHidden}>{words.templates}</legend>
      {templates.map((one) => (
        <span key={one.id} className={styles.template}>
          <button
            type="button"
            aria-label={words.templateLabel(one.name)}
            title={one.shared ? words.sharedBy(one.by) : undefined}
            onClick={() => onUse(one)}
          >
            <Marked text={one.name} />
          </button>
          {one.may_change && (
            <IconButton
              icon={Trash2}
              label={words.removeTemplate(one.name)}
              className={`${css.button.ghost} ${css.button.small}`}
              onClick={() => void run(() => removeTemplate(one.id))}
            />
          )}
        </span>
      ))}
      <ErrorText error={action.error} />
    </fieldset>
  );
}

/** Keeps what is chosen as a template. */
export function SaveTemplate({ chosen, prompt }: { chosen: Choices; prompt: string }) {
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const [saved, setSaved] = useState(false);
  const action = useAction();
  const save = async (): Promise<void> => {
    const made = templateOf(chosen, name.trim(), prompt, shared);
    if (await action.run(() => saveTemplate(made))) {
      setName("");
      setSaved(true);
    }
  };
  return (
    <div className={styles.saveTemplate}>
      <input
        value={name}
        maxLength={100}
        aria-label={words.templateName}
        placeholder={words.templateName}
        onChange={(event) => {
          setName(event.target.value);
          setSaved(false);
        }}
      />
      <label className={css.field.option}>
        <input
          type="checkbox"
          checked={shared}
          onChange={(event) => setShared(event.target.checked)}
        />{" "}
        {words.shareTemplate}
      </label>
      <button type="button" disabled={!name.trim() || action.busy} onClick={() => void save()}>
        {words.saveTemplate}
      </button>
      {saved && <span role="status">{words.savedTemplate}</span>}
      <ErrorText error={action.error} />
    </div>
  );
}
