import { ArrowLeft, ArrowRight, Check, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { text } from "../text";
import { css } from "../ui/css";
import { Icon } from "../ui/Icon";
import { IconButton } from "../ui/IconButton";
import styles from "./tour.module.css";

const words = text.app.tour;

/** Five steps through the demo. Each opens its page; everything stays usable beside it. */
export default function Tour({ onClose }: { onClose: () => void }) {
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const title = useRef<HTMLHeadingElement>(null);
  const step = words.steps[at];
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another step opens another page
  useEffect(() => {
    if (!step) return;
    go(step.path);
    title.current?.focus();
  }, [at]);
  if (!step) return null;
  const last = at === words.steps.length - 1;
  return (
    <aside className={styles.tour} aria-label={words.title}>
      <header>
        <span className={css.texts.muted}>{words.step(at + 1, words.steps.length)}</span>
        <IconButton icon={X} label={words.close} onClick={onClose} />
      </header>
      <h2 ref={title} tabIndex={-1}>
        {step.title}
      </h2>
      <p>{step.words}</p>
      <div className={styles.buttons}>
        <button type="button" disabled={at === 0} onClick={() => setAt(at - 1)}>
          <Icon of={ArrowLeft} /> {words.before}
        </button>
        <button
          type="button"
          className={css.button.primary}
          onClick={() => (last ? onClose() : setAt(at + 1))}
        >
          {last ? words.end : words.next} <Icon of={last ? Check : ArrowRight} />
        </button>
      </div>
    </aside>
  );
}
