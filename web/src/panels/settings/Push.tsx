import { useState } from "react";
import { errorText } from "../../api/http";
import { useAppState } from "../../state/store";
import { text } from "../../text";
import { css } from "../../ui/css";
import { isEnabled, type Preference, setPreference } from "../../ui/preferences";
import {
  choosePushButtons,
  choosePushKind,
  PUSH_KINDS,
  pushButtons,
  pushKinds,
} from "../../ui/push";
import styles from "./settings.module.css";

const words = text.settings;
const PREFERENCES: Preference[] = ["notify", "sound", "push"];

/** What this browser tells a person of, and how. */
export function Push() {
  const [pushes, setPushes] = useState(isEnabled("push"));
  return (
    <>
      {PREFERENCES.map((preference) => (
        <PreferenceSwitch
          key={preference}
          preference={preference}
          onChange={preference === "push" ? setPushes : undefined}
        />
      ))}
      {pushes && <Kinds />}
      {!window.isSecureContext && <p className={css.texts.muted}>{words.insecurePush}</p>}
    </>
  );
}

function PreferenceSwitch(props: {
  preference: Preference;
  onChange: ((on: boolean) => void) | undefined;
}) {
  const { preference } = props;
  const [on, setOn] = useState(isEnabled(preference));
  const [error, setError] = useState("");
  const show = (enabled: boolean): void => {
    setOn(enabled);
    props.onChange?.(enabled);
  };
  return (
    <label className={css.field.option}>
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => {
          const wanted = event.target.checked;
          setPreference(preference, wanted).then(
            (enabled) => {
              show(enabled);
              setError(wanted && !enabled ? words.blocked : "");
            },
            (failure) => {
              show(isEnabled(preference));
              setError(errorText(failure));
            },
          );
        }}
      />{" "}
      {words.preferences[preference]} <span className={css.texts.error}>{error}</span>
    </label>
  );
}

function Kinds() {
  const maySteer = useAppState((state) => state.me?.rights.includes("steer") ?? false);
  const [kinds, setKinds] = useState(pushKinds());
  const [buttons, setButtons] = useState(pushButtons());
  const [error, setError] = useState("");
  const save = (change: Promise<void>): void => {
    setError("");
    change
      .catch((failure) => setError(errorText(failure)))
      .finally(() => {
        setKinds(pushKinds());
        setButtons(pushButtons());
      });
  };
  return (
    <fieldset className={styles.kinds}>
      <legend>{words.pushOf}</legend>
      {PUSH_KINDS.map((kind) => (
        <label key={kind} className={css.field.option}>
          <input
            type="checkbox"
            checked={kinds.includes(kind)}
            onChange={(event) => save(choosePushKind(kind, event.target.checked, true))}
          />{" "}
          {words.kinds[kind]}
        </label>
      ))}
      {maySteer && (
        <>
          <label className={css.field.option}>
            <input
              type="checkbox"
              checked={buttons}
              onChange={(event) => save(choosePushButtons(event.target.checked, true))}
            />{" "}
            {words.buttons}
          </label>
          <p className={css.texts.muted}>{words.buttonsHint}</p>
        </>
      )}
      <span className={css.texts.error} role="alert">
        {error}
      </span>
    </fieldset>
  );
}
