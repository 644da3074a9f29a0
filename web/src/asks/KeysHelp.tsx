import { useState } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import { Dialog } from "../ui/Dialog";
import {
  keysEnabled,
  setKeysEnabled,
  setUndoSeconds,
  UNDO_CHOICES,
  undoSeconds,
} from "../ui/preferences";
import { Switch } from "../ui/Switch";
import styles from "./asks.module.css";

const words = text.asks.keys;

/** The dialog that lists all keys. */
export default function KeysHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={words.title} onClose={onClose}>
      <KeySwitch />
      <UndoChoice />
      <div className={styles.keys}>
        {words.groups.map(([title, where, keys]) => (
          <section key={title}>
            <h3>
              {title} <span className={css.texts.muted}>{where}</span>
            </h3>
            <dl>
              {keys.map(([key, does]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((one, index) => (
                      <kbd key={index}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

/** Whether single keys are commands, in this browser. */
export function KeySwitch() {
  const [on, setOn] = useState(keysEnabled);
  const change = (wanted: boolean): void => {
    setKeysEnabled(wanted);
    setOn(wanted);
  };
  return <Switch label={words.single} hint={words.singleHint} checked={on} onChange={change} />;
}

/** How long an answer that matters can be taken back, in this browser. */
export function UndoChoice() {
  const [seconds, setSeconds] = useState(undoSeconds);
  const choose = (chosen: number): void => {
    setUndoSeconds(chosen);
    setSeconds(chosen);
  };
  return (
    <p className={styles.keySwitch}>
      <label className={css.field.option}>
        {words.undo}{" "}
        <select value={seconds} onChange={(event) => choose(Number(event.target.value))}>
          {UNDO_CHOICES.map((one) => (
            <option key={one} value={one}>
              {one ? words.seconds(one) : words.none}
            </option>
          ))}
        </select>
      </label>
    </p>
  );
}
