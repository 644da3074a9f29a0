import type { ReactNode } from "react";
import styles from "./empty.module.css";
import { Icon, type LucideIcon } from "./Icon";

/** In place of a list without entries: what would be here, and how it gets here. */
export function Empty(props: { icon: LucideIcon; title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <Icon of={props.icon} size={28} />
      <p className={styles.title}>{props.title}</p>
      {props.children && <p className={styles.more}>{props.children}</p>}
    </div>
  );
}
