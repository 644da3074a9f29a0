import { type FormEvent, useState } from "react";
import { post, sessionPath } from "../api/http";
import type { components } from "../api/schema";
import { CopyButton } from "../panels/settings/CopyButton";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import styles from "./composer.module.css";

type Made = components["schemas"]["MadeShare"];

const words = text.settings;

/** Makes a read-only link to a session. */
export function ShareDialog({ session, onClose }: { session: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const [hours, setHours] = useState("24");
  const [link, setLink] = useState("");
  const action = useAction();
  const make = (event: FormEvent): void => {
    event.preventDefault();
    const body = { hours: Number(hours), ...(name.trim() ? { name: name.trim() } : {}) };
    void action.run(async () => {
      const made = await post<Made>(sessionPath(session, "/share"), body);
      setLink(location.origin + made.path);
    });
  };
  return (
    <Dialog title={words.share} onClose={onClose}>
      <form className={styles.prompts} onSubmit={make}>
        <p>{words.shareHint}</p>
        <label className={css.field.field}>
          <span>{words.shareName}</span>
          <input value={name} maxLength={64} onChange={(event) => setName(event.target.value)} />
        </label>
        <label className={css.field.field}>
          <span>{words.shareHours}</span>
          <select value={hours} onChange={(event) => setHours(event.target.value)}>
            {Object.entries(words.hours).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <ErrorText error={action.error} />
        {link ? (
          <div role="status">
            <p>
              {words.copyNow}{" "}
              <code className={css.texts.secret} data-secret="">
                {link}
              </code>
            </p>
            <CopyButton of={link} label={words.copyLink} />
          </div>
        ) : (
          <div className={css.layout.buttons}>
            <button type="submit" className={css.button.primary} disabled={action.busy}>
              {words.makeShare}
            </button>
          </div>
        )}
      </form>
    </Dialog>
  );
}
