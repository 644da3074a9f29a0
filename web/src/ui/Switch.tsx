import { Switch as Base } from "@base-ui/react/switch";
import type { ReactNode } from "react";
import styles from "./switch.module.css";

/** Something that is on or off, and takes effect at once. */
export function Switch(props: {
  label: ReactNode;
  /** What it does, in small letters. */
  hint?: ReactNode;
  checked: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
}) {
  return (
    <label className={styles.row}>
      <Base.Root
        className={styles.track}
        checked={props.checked}
        onCheckedChange={props.onChange}
        disabled={props.disabled}
      >
        <Base.Thumb className={styles.thumb} />
      </Base.Root>
      <span>{props.label}</span>
      {props.hint && <span className={styles.hint}>{props.hint}</span>}
    </label>
  );
}
