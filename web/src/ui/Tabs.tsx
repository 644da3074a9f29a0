import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import { Icon, type LucideIcon } from "./Icon";
import styles from "./pageTabs.module.css";

/** Parts of a page, one of which is shown. Arrow keys move between the tabs; they stay in sight. */
export function Tabs<T extends string>(props: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  tabs: readonly { value: T; label: ReactNode; icon?: LucideIcon }[];
  /** The part that is shown. */
  children: ReactNode;
}) {
  return (
    <Base.Root
      className={styles.root}
      value={props.value}
      onValueChange={(value: T) => props.onChange(value)}
    >
      <Base.List className={styles.list} aria-label={props.label}>
        {props.tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className={styles.tab}>
            {tab.icon && <Icon of={tab.icon} />}
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      <Base.Panel key={props.value} value={props.value} className={styles.panel} keepMounted>
        {props.children}
      </Base.Panel>
    </Base.Root>
  );
}
