// Text that is being generated, of every session, and when it is rendered.
//
// Deltas may arrive faster than a person reads. They are stored as they arrive, which costs next to
// nothing; subscribers are notified with an animation frame, a few times a second, and never so often
// that the page does little else. A hidden page has no animation frames, and so no work.
import { useCallback, useSyncExternalStore } from "react";
import type { Delta, Stored } from "../api/types";
import { addDeltas, dropComplete, type Live, NO_BLOCKS } from "./liveBlocks";

/** In ms: the shortest time between two renderings. */
const INTERVAL = 50;
/** Rendering takes at most one part in so many of the time. */
const SHARE = 4;

export class LiveText {
  private readonly texts = new Map<string, Live>();
  private readonly blocks = new Map<string, Live>();
  private readonly listeners = new Set<() => void>();
  private scheduled = false;
  private renderedAt = 0;
  private cost = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The blocks of a session with their texts so far. */
  of(session: string): Live {
    return this.texts.get(session) ?? NO_BLOCKS;
  }

  /** The same blocks, but another list only when one was added or dropped. Their texts may be stale. */
  blocksOf(session: string): Live {
    return this.blocks.get(session) ?? NO_BLOCKS;
  }

  receive(deltas: readonly Delta[], whole: boolean): void {
    for (const delta of deltas) {
      this.put(delta.session, addDeltas(this.of(delta.session), [delta], whole));
    }
    if (this.scheduled) return;
    this.scheduled = true;
    const next = this.renderedAt + Math.max(INTERVAL, this.cost * SHARE);
    const wait = Math.max(0, next - performance.now());
    setTimeout(() => requestAnimationFrame(() => this.render()), wait);
  }

  /** Drop the text of messages that are complete in these events. */
  dropComplete(session: string, events: readonly Stored[]): void {
    const before = this.of(session);
    const left = dropComplete(before, events);
    if (left === before) return;
    this.put(session, left);
    this.notify();
  }

  clear(): void {
    this.texts.clear();
    this.blocks.clear();
    this.notify();
  }

  private put(session: string, live: Live): void {
    if (live.length) this.texts.set(session, live);
    else this.texts.delete(session);
    const known = this.blocksOf(session);
    const same =
      known.length === live.length && known.every((one, at) => one.key === live[at]?.key);
    if (!same) this.blocks.set(session, live);
  }

  private render(): void {
    this.scheduled = false;
    this.renderedAt = performance.now();
    this.notify();
    // React renders in a microtask of its own, which is queued before this one.
    queueMicrotask(() => {
      this.cost = performance.now() - this.renderedAt;
    });
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The blocks that are being generated in a session, whatever their texts are. */
export function useLiveBlocks(liveText: LiveText, session: string): Live {
  return useSyncExternalStore(liveText.subscribe, () => liveText.blocksOf(session));
}

/** The text of a block that is being generated; undefined once it is complete. */
export function useLiveText(
  liveText: LiveText,
  session: string | undefined,
  key: string,
): string | undefined {
  const read = useCallback(
    () => (session ? liveText.of(session).find((one) => one.key === key)?.text : undefined),
    [liveText, session, key],
  );
  return useSyncExternalStore(liveText.subscribe, read);
}
