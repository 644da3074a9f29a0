import { type FormEvent, useState } from "react";
import { post } from "../../api/http";
import type { components } from "../../api/schema";
import { text } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { useAction } from "../../ui/useAction";
import { useNow } from "../../ui/useNow";
import { CopyButton } from "./CopyButton";
import styles from "./settings.module.css";

type Made = components["schemas"]["NewLoginLinks"];

const words = text.settings;
const LOCAL = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|$)/;
const ROLES = ["owner", "operator", "viewer"];

/** A link with a QR code that logs in another device. */
export function Device() {
  const [made, setMade] = useState<{ links: Made["links"]; until: number }>();
  const [name, setName] = useState("");
  const [role, setRole] = useState("owner");
  const [chosen, setChosen] = useState(0);
  const action = useAction();
  const now = useNow(5);
  const make = (event: FormEvent): void => {
    event.preventDefault();
    const body = name.trim() ? { name: name.trim(), role } : {};
    void action.run(async () => {
      const found = await post<Made>("/api/logins", body);
      setMade({ links: found.links, until: Date.now() + found.seconds * 1000 });
      setChosen(0);
    });
  };
  const link = made?.links[chosen];
  return (
    <section className={css.card.card} aria-labelledby="device">
      <h2 id="device">{words.device}</h2>
      <p className={css.texts.muted}>{words.deviceHint}</p>
      <form className={styles.row} onSubmit={make}>
        <label className={css.field.field}>
          <span>{words.deviceFor}</span>
          <input
            value={name}
            maxLength={64}
            placeholder={words.myself}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        {name.trim() && (
          <label className={css.field.field}>
            <span>{words.deviceRole}</span>
            <select value={role} onChange={(event) => setRole(event.target.value)}>
              {ROLES.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
        <button type="submit" disabled={action.busy}>
          {words.makeLink}
        </button>
      </form>
      <ErrorText error={action.error} />
      {made && link && now < made.until && (
        <div className={styles.link} role="status">
          <img src={link.code} alt={words.qr} />
          <div>
            <p>{words.scan}</p>
            {made.links.length > 1 && (
              <label className={css.field.field}>
                <span>{words.address}</span>
                <select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
                  {made.links.map((one, index) => (
                    <option key={one.address} value={index}>
                      {one.address}
                    </option>
                  ))}
                </select>
              </label>
            )}
            <p>
              <code className={css.texts.secret} data-secret="">
                {link.link}
              </code>
            </p>
            {LOCAL.test(link.address) && (
              <p className={css.note.note} data-tone="warn">
                {words.onlyHere}
              </p>
            )}
            <CopyButton of={link.link} label={words.copyLink} />
          </div>
        </div>
      )}
      {made && now >= made.until && <p role="status">{words.expired}</p>}
    </section>
  );
}
