import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import styles from "./clamped.module.css";

/** Content that takes a few lines until a person wants all of it. */
export function Clamped(props: { children: ReactNode; lines?: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const [long, setLong] = useState(false);
  useLayoutEffect(() => {
    const box = place.current;
    if (!box) return;
    const look = (): void => setLong(box.scrollHeight > box.clientHeight + 4);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);
  return (
    <div className={styles.clamped}>
      <div
        ref={place}
        className={styles.content}
        data-open={open || undefined}
        data-long={long || undefined}
        style={open ? undefined : { maxHeight: `${(props.lines ?? 8) * 1.5}em` }}
      >
        {props.children}
      </div>
      {(long || open) && (
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {open ? text.story.showLess : text.story.showAll}
        </button>
      )}
    </div>
  );
}
