import { useSyncExternalStore } from "react";
import { text } from "../text";
import { css } from "./css";
import { dismiss, getPageErrors, subscribePageErrors } from "./pageErrors";
import styles from "./pageErrors.module.css";

/** Errors that no component has shown. */
export function PageErrors() {
  const errors = useSyncExternalStore(subscribePageErrors, getPageErrors);
  return (
    <div className={styles.list} role="alert">
      {errors.map(({ text: said, count }) => (
        <p key={said}>
          <span>
            {said}
            {count > 1 && ` ${text.app.times(count)}`}
          </span>
          <button type="button" className={css.button.small} onClick={() => dismiss(said)}>
            {text.app.dismiss}
          </button>
        </p>
      ))}
    </div>
  );
}
