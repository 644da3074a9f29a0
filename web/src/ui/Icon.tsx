import type { LucideIcon } from "lucide-react";
import styles from "./icon.module.css";

export type { LucideIcon };

/**
 * An icon of the one set. Import icons by name (`import { X } from "lucide-react"`), so that only those
 * that are used are loaded. It is decoration: what it means is said in words beside it, or by the
 * `aria-label` of its button.
 */
export function Icon({ of: Shape, size = 16 }: { of: LucideIcon; size?: number }) {
  return (
    <Shape
      className={styles.icon}
      size={size}
      strokeWidth={1.75}
      aria-hidden="true"
      focusable="false"
    />
  );
}
