import { useState } from "react";
import { logout, post } from "../api/http";
import { KeySwitch, UndoChoice } from "../asks/KeysHelp";
import { showKeys } from "../asks/showKeys";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { PageHead } from "../ui/PageHead";
import { setTheme, THEMES, type Theme, theme } from "../ui/preferences";
import { useAction } from "../ui/useAction";
import { Shares, Tokens } from "./settings/Access";
import { Device } from "./settings/Device";
import { Encryption } from "./settings/Encryption";
import { HubPart } from "./settings/HubPart";
import { Push } from "./settings/Push";
import styles from "./settings/settings.module.css";

const words = text.settings;

/** This browser, other devices, the hub, and who has access. */
export default function Settings() {
  const me = useAppState((state) => state.me);
  const [shown, setShown] = useState(theme());
  const owner = me?.role === "owner";
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title} />
      <section className={css.card.card}>
        <h2>{words.browser}</h2>
        <label className={`${css.field.field} ${styles.narrow}`}>
          <span>{words.theme}</span>
          <select
            value={shown}
            onChange={(event) => {
              const chosen = event.target.value as Theme;
              setTheme(chosen);
              setShown(chosen);
            }}
          >
            {THEMES.map((one) => (
              <option key={one} value={one}>
                {words.themes[one]}
              </option>
            ))}
          </select>
        </label>
        <Push />
      </section>
      {owner && <Device />}
      <Encryption />
      <section className={css.card.card}>
        <h2>{words.keys}</h2>
        <KeySwitch />
        <UndoChoice />
        <p>
          <button type="button" onClick={showKeys}>
            {words.showKeys}
          </button>
        </p>
      </section>
      <section className={css.card.card}>
        <h2>{words.you}</h2>
        <p>
          {me?.name} · {me?.role}
        </p>
        <p className={css.texts.muted}>{words.follows}</p>
        <div className={css.layout.buttons}>
          <button type="button" onClick={() => void logout().then(() => location.assign("/login"))}>
            {words.logOut}
          </button>
        </div>
        <TelegramCode />
      </section>
      {owner && <Tokens />}
      {owner && <Shares />}
      <HubPart />
    </div>
  );
}

/** A code with which a Telegram chat is paired with this person. */
function TelegramCode() {
  const [code, setCode] = useState("");
  const action = useAction();
  const make = async (): Promise<void> => {
    await action.run(async () => setCode((await post<{ code: string }>("/api/pairing/code")).code));
  };
  return (
    <>
      <div className={css.layout.buttons}>
        <button type="button" onClick={() => void make()}>
          {words.pairTelegram}
        </button>
      </div>
      <ErrorText error={action.error} />
      {code && (
        <p role="status">
          {words.sendBot}{" "}
          <code className={css.texts.secret} data-secret="">
            {text.parts.pair(code)}
          </code>
        </p>
      )}
    </>
  );
}
