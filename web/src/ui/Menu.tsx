import { Menu as Base } from "@base-ui/react/menu";
import { Check } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { css } from "./css";
import { menuOpenedBy } from "./focus";
import { Icon, type LucideIcon } from "./Icon";
import styles from "./popup.module.css";
import { useEscape } from "./useEscape";

/** A button that opens a menu. Arrow keys move in it; Escape and a click outside close it. */
export function Menu(props: {
  /** The button's name, where its content is an icon only. */
  label?: string;
  /** The content of the button. */
  trigger: ReactNode;
  triggerClass?: string;
  disabled?: boolean;
  /** `MenuItem`, `MenuChoices`, `MenuGroup` and `MenuLine`. */
  children: ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEscape(open, () => setOpen(false));
  return (
    <Base.Root
      open={open}
      onOpenChange={(opens) => {
        if (opens) menuOpenedBy(button.current);
        setOpen(opens);
      }}
      modal={false}
    >
      <Base.Trigger
        ref={button}
        className={props.triggerClass ?? css.button.ghost}
        aria-label={props.label}
        title={props.label}
        disabled={props.disabled}
      >
        {props.trigger}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className={styles.place} sideOffset={4} collisionPadding={8} align="end">
          <Base.Popup className={styles.popup} data-keeps-keys="">
            {props.children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

/** One thing to do. */
export function MenuItem(props: {
  icon?: LucideIcon;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  /** A second line, in small letters. */
  hint?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Base.Item
      className={styles.item}
      data-danger={props.danger || undefined}
      disabled={props.disabled}
      onClick={props.onSelect}
    >
      {props.icon && <Icon of={props.icon} />}
      <span>{props.children}</span>
      {props.hint && <span className={styles.hint}>{props.hint}</span>}
    </Base.Item>
  );
}

/** A choice of one among several. */
export function MenuChoices<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: ReactNode; hint?: ReactNode; disabled?: boolean }[];
  onChange: (value: T) => void;
}) {
  return (
    <Base.RadioGroup value={props.value} onValueChange={(value: T) => props.onChange(value)}>
      <Base.GroupLabel className={styles.group}>{props.label}</Base.GroupLabel>
      {props.options.map((option) => (
        <Base.RadioItem
          key={option.value}
          className={styles.item}
          value={option.value}
          disabled={option.disabled}
          closeOnClick
        >
          <span>{option.label}</span>
          {option.hint && <span className={styles.hint}>{option.hint}</span>}
          <Base.RadioItemIndicator className={styles.mark}>
            <Icon of={Check} />
          </Base.RadioItemIndicator>
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  );
}

/** Several things to do under one heading. */
export function MenuGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Base.Group>
      <Base.GroupLabel className={styles.group}>{label}</Base.GroupLabel>
      {children}
    </Base.Group>
  );
}

export function MenuLine() {
  return <Base.Separator className={styles.line} />;
}
