import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { guard, isField } from "../asks/keyGuard";
import type { OpenSession } from "../state/appState";
import type { LiveBlock } from "../state/liveBlocks";
import { useLiveBlocks } from "../state/liveText";
import { store, useAppState } from "../state/store";
import { type Entry, earlierConversation } from "../state/story";
import { rowAt, type StoryRow, storyRows } from "../state/storyRows";
import { text } from "../text";
import { css } from "../ui/css";
import { EntryRow } from "./EntryRow";
import { jumpReached, useJumpTarget } from "./jumpToAsk";
import { isLive, LiveRow } from "./LiveRow";
import { RunRow } from "./RunRow";
import { goToEvent, useStoryTarget } from "./storyTarget";
import styles from "./timeline.module.css";

const NEAR_TOP = 600;
const NEAR_END = 80;
const GAP = 12;
/** In pixels: the assumed heights of rows that were not rendered yet. */
const ESTIMATE = 40;
const TEXT_LINE = 25;
/** Letters of a line of text. */
const LINE = 90;
const MOST_LINES = 40;
/** Rows beyond those in sight: few at first, so that the story is shown soon. */
const OVERSCAN = 6;
const FIRST_OVERSCAN = 1;

function estimate(row: StoryRow | undefined): number {
  const said = row?.kind === "entry" && "text" in row.entry ? row.entry.text : "";
  if (said.length < LINE) return ESTIMATE;
  const lines = said.slice(0, MOST_LINES * LINE).split("\n");
  const count = lines.reduce((sum, line) => sum + Math.ceil(line.length / LINE), 0);
  return ESTIMATE + TEXT_LINE * Math.min(MOST_LINES, count);
}

/** A block that is being generated has the key of its final entry, so that its row stays in place. */
function entryOf(session: string, { key, text, thinking }: LiveBlock): Entry {
  return thinking
    ? { kind: "thinking", key, at: 0, seq: 0, text, live: session }
    : { kind: "text", key, at: 0, seq: 0, text, uuid: "", live: session };
}

/** The key of the row that tells what the agent does. */
const LIVE = "live";

function hasAsk(row: StoryRow, ask: string): boolean {
  if (row.kind !== "entry") return false;
  return row.ask?.opened.ask === ask || row.entry.key === `ask:${ask}`;
}

interface TimelineProps {
  session: string;
  opened: OpenSession;
  /** Only this earlier conversation of the session. */
  conversation?: string | undefined;
}

/** A session's conversation, from its end; older parts are loaded on scrolling up. */
export function Timeline({ session, opened, conversation }: TimelineProps) {
  const { story } = opened;
  const blocks = useLiveBlocks(store.liveText, session);
  const place = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const following = useRef(true);
  const lastTop = useRef(0);
  // Queued prompts are shown at the composer until their turn begins.
  const part = useMemo(
    () =>
      conversation === undefined ? story.entries : earlierConversation(story.entries, conversation),
    [story, conversation],
  );
  const said = useMemo(
    () => (part ?? []).filter((one) => one.kind !== "prompt" || one.stage !== "queued"),
    [part],
  );
  const entries = useMemo(() => {
    if (conversation !== undefined) return said;
    // Loaded events may be ahead of the stream: a complete block is not live any more.
    const made = blocks.filter((one) => (story.blocks.get(one.message) ?? 0) <= one.block);
    return made.length ? [...said, ...made.map((one) => entryOf(session, one))] : said;
  }, [session, story, said, blocks, conversation]);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [foundKey, setFoundKey] = useState("");
  const lines = useMemo(() => storyRows(entries, unfolded), [entries, unfolded]);
  const view = useAppState((state) => state.sessions.get(session));
  const live = conversation === undefined && view !== undefined && isLive(view);
  const toggle = useCallback((key: string) => {
    setUnfolded((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  }, []);
  const count = lines.length + (live ? 1 : 0);
  const [shown, setShown] = useState(false);
  useEffect(() => {
    // After the first paint.
    const timer = count > 0 ? setTimeout(() => setShown(true), 100) : undefined;
    return () => clearTimeout(timer);
  }, [count]);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => place.current,
    estimateSize: useCallback((index: number) => estimate(lines[index]), [lines]),
    getItemKey: useCallback((index: number) => lines[index]?.key ?? LIVE, [lines]),
    overscan: shown ? OVERSCAN : FIRST_OVERSCAN,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: NEAR_END,
    // The end is rendered first: no row above it is rendered needlessly.
    initialOffset: () => lines.reduce((sum, row) => sum + estimate(row) + GAP, 0),
    initialRect: { width: 0, height: globalThis.innerHeight },
    paddingStart: 24,
    paddingEnd: 24,
    gap: GAP,
  });
  const items = rows.getVirtualItems();

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the first entries are there
  useLayoutEffect(() => {
    if (count > 0) rows.scrollToEnd();
  }, [session, count > 0]);

  // Many events may show nothing: older ones are loaded until the view is filled.
  useEffect(() => {
    const box = place.current;
    if (!part && opened.older && !opened.loading) void store.open.loadOlder(session);
    if (box && opened.older && !opened.loading && box.scrollHeight < 2 * box.clientHeight) {
      void store.open.loadOlder(session);
    }
  }, [session, opened, part]);

  // A person at the end stays there when the size changes: a panel opens, a prompt is queued.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the place is there with the first entry
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    let known = false;
    const watch = new ResizeObserver(() => {
      if (known && following.current) box.scrollTop = box.scrollHeight;
      known = true;
    });
    watch.observe(box);
    return () => watch.disconnect();
  }, [count > 0]);

  // A row may turn out larger than it was assumed to be.
  const size = rows.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the size has changed
  useLayoutEffect(() => {
    const box = place.current;
    if (box && following.current) box.scrollTop = box.scrollHeight;
  }, [size]);

  const wanted = useJumpTarget();
  useEffect(() => {
    const index = wanted ? lines.findIndex((row) => hasAsk(row, wanted)) : -1;
    if (!wanted || index < 0) return;
    rows.scrollToIndex(index, { align: "center" });
    // The row is rendered by then; the focus scrolls a long card to its top.
    const timer = setTimeout(() => {
      const card = place.current?.querySelector<HTMLElement>(`[data-ask="${CSS.escape(wanted)}"]`);
      if (!card) return;
      jumpReached(wanted);
      // A person who writes by now keeps the focus.
      if (!isField(document.activeElement)) guard.arrived(card);
    }, 50);
    return () => clearTimeout(timer);
  }, [wanted, lines, rows]);

  // A link or a search leads to an event: it is loaded, unfolded and shown.
  const target = useStoryTarget(session);
  useEffect(() => {
    if (!target || !story.last) return;
    if (story.first > target.seq && opened.older) {
      if (!opened.loading) void store.open.loadOlder(session);
      return;
    }
    const index = rowAt(lines, target.seq);
    const row = lines[index];
    if (!row) return goToEvent(undefined);
    if (row.kind === "run" && !row.open) return toggle(row.key);
    following.current = false;
    setFoundKey(row.key);
    rows.scrollToIndex(index, { align: "start" });
    // Rows around it are measured by then.
    const timer = setTimeout(() => {
      rows.scrollToIndex(index, { align: "center" });
      goToEvent(undefined);
    }, 80);
    return () => clearTimeout(timer);
  }, [target, lines, rows, session, opened, story, toggle]);

  const scrolled = (): void => {
    const box = place.current;
    if (!box) return;
    // Content that grows below is no reason to leave the end: only a person scrolls up.
    const up = box.scrollTop < lastTop.current - 1;
    lastTop.current = box.scrollTop;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END) following.current = true;
    else if (up) following.current = false;
    setAtEnd(following.current);
    if (box.scrollTop < NEAR_TOP) void store.open.loadOlder(session);
  };

  if (!count && !opened.older && !opened.error) {
    return (
      <div className={`${styles.log} ${css.empty.page}`} data-empty="">
        {!opened.loading && <p>{text.story.empty}</p>}
      </div>
    );
  }
  return (
    <div className={styles.frame}>
      <div
        className={styles.log}
        ref={place}
        onScroll={scrolled}
        role="log"
        aria-label={text.story.label}
        tabIndex={0}
      >
        {opened.older && (
          <p className={styles.older}>{opened.loading ? text.story.loadingOlder : ""}</p>
        )}
        <div className={styles.rows} style={{ height: size }}>
          {items.map((item) => {
            const row = lines[item.index];
            return (
              <div
                key={item.key}
                ref={rows.measureElement}
                data-index={item.index}
                className={styles.row}
                data-nested={(row?.kind === "entry" && row.nested) || undefined}
                data-found={(row && row.key === foundKey) || undefined}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {row?.kind === "run" && <RunRow row={row} onToggle={toggle} />}
                {row?.kind === "entry" && (
                  <EntryRow
                    entry={row.entry}
                    threads={story.threads}
                    ask={row.ask}
                    found={row.key === foundKey}
                  />
                )}
                {!row && view && (
                  <LiveRow session={view} story={story} writing={blocks.length > 0} />
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!atEnd && (
        <button type="button" className={styles.toEnd} onClick={() => rows.scrollToEnd()}>
          {text.story.toEnd}
        </button>
      )}
    </div>
  );
}
