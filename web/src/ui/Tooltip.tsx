import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactElement, ReactNode } from "react";
import styles from "./popup.module.css";

/**
 * A remark on a control, for the mouse and for keys. It adds to what the control says by itself: on a
 * phone it is not shown.
 */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactElement }) {
  return (
    <Base.Root>
      <Base.Trigger render={children} delay={400} />
      <Base.Portal>
        <Base.Positioner className={styles.place} sideOffset={6} collisionPadding={8}>
          <Base.Popup className={styles.tip}>{text}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
