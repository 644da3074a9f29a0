import { Popover as Base } from "@base-ui/react/popover";
import { type ReactNode, useState } from "react";
import { css } from "./css";
import { withMarks } from "./marks";
import styles from "./popup.module.css";
import { useEscape } from "./useEscape";

/** A button that opens a small panel beside it. Escape and a click outside close it. */
export function Popover(props: {
  /** The button's name, where its content does not say enough. */
  label?: string;
  trigger: ReactNode;
  triggerClass?: string;
  title: string;
  /** The content; as a function it gets what closes the popover. */
  children: ReactNode | ((close: () => void) => ReactNode);
}) {
  const [open, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  useEscape(open, close);
  return (
    <Base.Root open={open} onOpenChange={setOpen}>
      <Base.Trigger
        className={props.triggerClass ?? css.button.ghost}
        aria-label={props.label}
        title={props.label && withMarks(props.label)}
      >
        {props.trigger}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className={styles.place} sideOffset={4} collisionPadding={8}>
          <Base.Popup className={`${styles.popup} ${styles.popover}`} data-keeps-keys="">
            <Base.Title className={styles.title}>{props.title}</Base.Title>
            {typeof props.children === "function" ? props.children(close) : props.children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
