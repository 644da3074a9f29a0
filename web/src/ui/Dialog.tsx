import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, type RefObject, useState } from "react";
import { text } from "../text";
import { css } from "./css";
import styles from "./dialog.module.css";
import { openerNow } from "./focus";
import { Icon } from "./Icon";
import { useEscape } from "./useEscape";

/**
 * A dialog over the page, for as long as it is rendered. Escape, its button and a click beside it close
 * it, and the focus goes back to where it was. On a small screen it is a sheet at the bottom.
 */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  /** What has the focus at first; the first field or button if nothing is named. */
  initialFocus?: RefObject<HTMLElement | null>;
  /** How wide it may be. */
  size?: "s" | "m" | "l";
  /** Buttons that stay in sight at its bottom. */
  actions?: ReactNode;
  /** Whether a click beside it leaves it open: for forms with something to lose. */
  keepOpen?: boolean;
  children: ReactNode;
}) {
  useEscape(true, props.onClose);
  const [opener] = useState(openerNow);
  return (
    <Base.Root
      open
      disablePointerDismissal={props.keepOpen}
      onOpenChange={(open) => {
        if (!open) props.onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          className={styles.popup}
          data-size={props.size ?? "m"}
          data-keeps-keys=""
          initialFocus={props.initialFocus}
          finalFocus={() => (opener?.isConnected ? opener : true)}
        >
          <header className={styles.head}>
            <Base.Title className={styles.title}>{props.title}</Base.Title>
            <Base.Close
              className={`${css.button.ghost} ${css.button.iconButton} ${styles.close}`}
              aria-label={text.common.close}
            >
              <Icon of={X} />
            </Base.Close>
          </header>
          <div className={styles.body}>{props.children}</div>
          {props.actions && <footer className={styles.actions}>{props.actions}</footer>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
