import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import type { Opened } from "../state/store";
import { store } from "../state/store";
import { EntryRow } from "./EntryRow";
import { Markdown } from "./Markdown";

const NEAR_TOP = 600;
const NEAR_END = 80;

/** A session's story, from its end; older parts are loaded as one scrolls up. */
export function Timeline({ session, opened }: { session: string; opened: Opened }) {
  const { story, live } = opened;
  const place = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const count = story.entries.length + live.length;
  const rows = useVirtualizer({
    count,
    getScrollElement: () => place.current,
    estimateSize: () => 64,
    getItemKey: (index) =>
      story.entries[index]?.key ?? live[index - story.entries.length]?.key ?? index,
    overscan: 8,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: NEAR_END,
    paddingStart: 24,
    paddingEnd: 24,
    gap: 12,
  });
  const items = rows.getVirtualItems();

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the first entries are there
  useEffect(() => {
    if (count > 0) rows.scrollToIndex(count - 1, { align: "end" });
  }, [session, count > 0]);

  const scrolled = (): void => {
    const box = place.current;
    if (!box) return;
    setAtEnd(box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END);
    if (box.scrollTop < NEAR_TOP) void store.older(session);
  };

  if (!count && !opened.loading) {
    return (
      <div className="timeline empty-state">
        <p>Nothing has been said yet. Write what is to be done below.</p>
      </div>
    );
  }
  return (
    <div className="timeline-frame">
      <div
        className="timeline"
        ref={place}
        onScroll={scrolled}
        role="log"
        aria-label="What was said"
        tabIndex={0}
      >
        <div className="rows" style={{ height: rows.getTotalSize() }}>
          {items.map((item) => {
            const entry = story.entries[item.index];
            const block = live[item.index - story.entries.length];
            return (
              <div
                key={item.key}
                ref={rows.measureElement}
                data-index={item.index}
                className="row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {entry && <EntryRow entry={entry} threads={story.threads} />}
                {block && !block.thinking && <Markdown text={block.text} live />}
                {block?.thinking && (
                  <details className="thinking" open>
                    <summary>Thinking …</summary>
                    <Markdown text={block.text} live />
                  </details>
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!atEnd && (
        <button
          type="button"
          className="to-end"
          onClick={() => rows.scrollToIndex(count - 1, { align: "end" })}
        >
          To the end
        </button>
      )}
    </div>
  );
}
