import { CSPProvider } from "@base-ui/react/csp-provider";
import { Select as Base } from "@base-ui/react/select";
import { Check, ChevronDown } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Icon } from "./Icon";
import styles from "./popup.module.css";
import { useEscape } from "./useEscape";

export interface Option<T extends string> {
  value: T;
  label: ReactNode;
  /** A second line, in small letters. */
  hint?: ReactNode;
  disabled?: boolean;
}

/** A choice of one among several, with room for a remark on each. */
export function Select<T extends string>(props: {
  /** Its name for screen readers. */
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
  disabled?: boolean;
  /** Classes of the button, such as `small` or `ghost`. */
  className?: string | undefined;
}) {
  const [open, setOpen] = useState(false);
  useEscape(open, () => setOpen(false));
  const chosen = props.options.find((option) => option.value === props.value);
  return (
    // The page's rules allow no style elements in it.
    <CSPProvider disableStyleElements>
      <Base.Root
        value={props.value}
        onValueChange={(value) => value !== null && props.onChange(value)}
        open={open}
        onOpenChange={setOpen}
        disabled={props.disabled}
        modal={false}
      >
        <Base.Trigger
          className={`${styles.choose} ${props.className ?? ""}`}
          aria-label={props.label}
        >
          <span>{chosen?.label ?? props.value}</span>
          <Base.Icon>
            <Icon of={ChevronDown} size={14} />
          </Base.Icon>
        </Base.Trigger>
        <Base.Portal>
          <Base.Positioner
            className={styles.place}
            sideOffset={4}
            collisionPadding={8}
            alignItemWithTrigger={false}
          >
            <Base.Popup className={styles.popup} data-keeps-keys="">
              {props.options.map((option) => (
                <Base.Item
                  key={option.value}
                  className={styles.item}
                  value={option.value}
                  disabled={option.disabled}
                >
                  <Base.ItemText render={<span />}>{option.label}</Base.ItemText>
                  {option.hint && <span className={styles.hint}>{option.hint}</span>}
                  <Base.ItemIndicator className={styles.mark}>
                    <Icon of={Check} />
                  </Base.ItemIndicator>
                </Base.Item>
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  );
}
