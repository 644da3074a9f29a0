import { type ReactNode, useRef } from "react";
import { text } from "../text";
import styles from "./confirm.module.css";
import { css } from "./css";
import { Dialog } from "./Dialog";

/** A question before something that cannot be taken back. What is safe has the focus. */
export function Confirm(props: {
  title: string;
  /** The verb on the button that does it. */
  verb: string;
  /** The verb on the other button. */
  keep?: string;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  const safe = useRef<HTMLButtonElement>(null);
  const confirm = (): void => {
    props.onClose();
    props.onConfirm();
  };
  return (
    <Dialog
      title={props.title}
      size="s"
      onClose={props.onClose}
      initialFocus={safe}
      actions={
        <>
          <button type="button" ref={safe} onClick={props.onClose}>
            {props.keep ?? text.common.cancel}
          </button>
          <button type="button" className={css.button.danger} onClick={confirm}>
            {props.verb}
          </button>
        </>
      }
    >
      <div className={styles.text}>{props.children}</div>
    </Dialog>
  );
}
