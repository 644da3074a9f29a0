// The menu that opens while a person writes: the CLI's commands after "/", files after "@".

import { useEffect, useRef } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import styles from "./composer.module.css";
import { type MenuItem, MOST_ITEMS } from "./suggestions";

export function SuggestionMenu(props: {
  id: string;
  items: readonly MenuItem[];
  selected: number;
  onSelect: (item: MenuItem) => void;
}) {
  const chosen = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice is scrolled into sight
  useEffect(() => chosen.current?.scrollIntoView?.({ block: "nearest" }), [props.selected]);
  if (!props.items.length) return null;
  const left = props.items.length - MOST_ITEMS;
  return (
    <div className={styles.menu}>
      <div role="listbox" id={props.id} aria-label={text.composer.suggestions}>
        {props.items.slice(0, MOST_ITEMS).map((item, index) => (
          <button
            key={item.name}
            id={`${props.id}-${index}`}
            ref={index === props.selected ? chosen : undefined}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={index === props.selected}
            onMouseDown={(event) => {
              event.preventDefault();
              props.onSelect(item);
            }}
          >
            <code>{item.name}</code>
            {item.hint && <span className={styles.hint}>{item.hint}</span>}
            {item.own && <span className={styles.own}>{text.composer.own}</span>}
            <span className={`${css.texts.muted} ${styles.about}`}>{item.description}</span>
          </button>
        ))}
      </div>
      {left > 0 && <p className={css.texts.muted}>{text.composer.moreItems(left)}</p>}
    </div>
  );
}
