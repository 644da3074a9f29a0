import { ChevronDown, ChevronUp, X } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useState } from "react";
import { get } from "../api/http";
import { findInStory } from "../state/findInStory";
import type { Story } from "../state/story";
import { text } from "../text";
import { css } from "../ui/css";
import { takeFocus } from "../ui/focus";
import { IconButton } from "../ui/IconButton";
import { useEscape } from "../ui/useEscape";
import styles from "./find.module.css";
import { goToEvent } from "./storyTarget";

interface Hits {
  hits: { seq: number }[];
}

/** In ms: how long a person has to pause before the hub is asked. */
const PAUSE = 250;
const MOST_HITS = 200;

/** Finds words in a session: what is loaded at once, and the rest by the hub's index. */
export function FindBar(props: { session: string; story: Story; onClose: () => void }) {
  const { session, story, onClose } = props;
  const [words, setWords] = useState("");
  const [older, setOlder] = useState<number[]>([]);
  const [searching, setSearching] = useState(false);
  const [at, setAt] = useState<number>();
  useEscape(true, onClose);
  const here = useMemo(() => findInStory(story, words), [story, words]);
  const { first } = story;
  const found = useMemo(
    () => [...new Set([...older.filter((seq) => seq < first), ...here])].sort((a, b) => a - b),
    [older, here, first],
  );
  // What is loaded grows while one goes through the matches: the hub is not asked again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is looked for
  useEffect(() => {
    setOlder([]);
    setAt(undefined);
    if (!words.trim() || first <= 1) return setSearching(false);
    setSearching(true);
    const stop = new AbortController();
    const timer = setTimeout(() => {
      get<Hits>("/api/search", { q: words, session, limit: MOST_HITS })
        .then((page) => {
          if (!stop.signal.aborted) setOlder(page.hits.map((hit) => hit.seq));
        })
        .catch(() => undefined)
        .finally(() => {
          if (!stop.signal.aborted) setSearching(false);
        });
    }, PAUSE);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [words, session]);
  const index = at === undefined ? -1 : found.indexOf(at);
  const go = (step: 1 | -1): void => {
    if (!found.length) return;
    // The newest match is the first one: a person reads from the end.
    const next = index < 0 ? found.length - 1 : (index + step + found.length) % found.length;
    const seq = found[next];
    if (seq === undefined) return;
    setAt(seq);
    goToEvent({ session, seq, words });
  };
  const pressed = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? 1 : -1);
  };
  const unread = older.filter((seq) => seq < first).length;
  return (
    <search className={styles.bar}>
      <input
        ref={takeFocus}
        type="search"
        value={words}
        aria-label={text.story.find.label}
        placeholder={text.story.find.placeholder}
        onChange={(event) => setWords(event.target.value)}
        onKeyDown={pressed}
      />
      <span className={styles.count} role="status">
        {words.trim() &&
          (searching && !found.length
            ? text.story.find.searching
            : text.story.find.count(index < 0 ? 0 : found.length - index, found.length))}
        {unread > 0 && <span className={css.layout.wide}> · {text.story.find.older(unread)}</span>}
      </span>
      <IconButton
        icon={ChevronUp}
        label={text.story.find.previous}
        disabled={!found.length}
        onClick={() => go(-1)}
      />
      <IconButton
        icon={ChevronDown}
        label={text.story.find.next}
        disabled={!found.length}
        onClick={() => go(1)}
      />
      <IconButton icon={X} label={text.story.find.close} onClick={onClose} />
    </search>
  );
}

/** Ctrl+F or Cmd+F opens the bar; pressed in the bar, it is the browser's own. */
export function useFindKey(open: () => void): void {
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent): void => {
      const wanted = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (!wanted || event.key.toLowerCase() !== "f") return;
      if (document.activeElement?.closest(`.${styles.bar}`)) return;
      event.preventDefault();
      open();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [open]);
}
