import type { ComponentProps } from "react";
import { css } from "./css";
import { Icon, type LucideIcon } from "./Icon";

/** A button that shows only an icon. Its label is its name for screen readers and its title for the mouse. */
export function IconButton({
  icon,
  label,
  className = css.button.ghost,
  ...rest
}: { icon: LucideIcon; label: string } & Omit<ComponentProps<"button">, "children" | "type">) {
  return (
    <button
      type="button"
      title={label}
      {...rest}
      className={`${css.button.iconButton} ${className}`}
      aria-label={label}
    >
      <Icon of={icon} />
    </button>
  );
}
