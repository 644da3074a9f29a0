// Text that is being made, of every session, and when it is drawn.
//
// Deltas may come faster than anybody reads. They are added as they come, which costs next to
// nothing; whoever shows them is told with a frame, some times a second, and never so often that the
// page does little else. A page that is not in sight has no frames, and so no work.
import { useCallback, useSyncExternalStore } from "react";
import type { Delta, Stored } from "../api/types";
import { heard, type Live, SILENT, superseded } from "./live";

/** In ms: live text is drawn so often at most. */
const DRAWN_EVERY = 50;
/** Of the time, so much is left for everything else: three parts of four. */
const SHARE = 4;

export class Voices {
  private readonly lives = new Map<string, Live>();
  private readonly shapes = new Map<string, Live>();
  private readonly listeners = new Set<() => void>();
  private scheduled = false;
  private drawn = 0;
  private cost = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** What is being said in a session. */
  of(session: string): Live {
    return this.lives.get(session) ?? SILENT;
  }

  /** The same, but another only when a block has come or gone: of its texts nothing can be told. */
  shapeOf(session: string): Live {
    return this.shapes.get(session) ?? SILENT;
  }

  hear(deltas: readonly Delta[], whole: boolean): void {
    for (const delta of deltas) {
      this.put(delta.session, heard(this.of(delta.session), [delta], whole));
    }
    if (this.scheduled) return;
    this.scheduled = true;
    const next = this.drawn + Math.max(DRAWN_EVERY, this.cost * SHARE);
    const wait = Math.max(0, next - performance.now());
    setTimeout(() => requestAnimationFrame(() => this.draw()), wait);
  }

  /** These events have happened: what was complete in them is no longer being made. */
  supersede(session: string, events: readonly Stored[]): void {
    const before = this.of(session);
    const left = superseded(before, events);
    if (left === before) return;
    this.put(session, left);
    this.tell();
  }

  clear(): void {
    this.lives.clear();
    this.shapes.clear();
    this.tell();
  }

  private put(session: string, live: Live): void {
    if (live.length) this.lives.set(session, live);
    else this.lives.delete(session);
    const shape = this.shapeOf(session);
    const same =
      shape.length === live.length && shape.every((one, at) => one.key === live[at]?.key);
    if (!same) this.shapes.set(session, live);
  }

  private draw(): void {
    this.scheduled = false;
    this.drawn = performance.now();
    this.tell();
    // React draws in a microtask of its own, which stands before this one.
    queueMicrotask(() => {
      this.cost = performance.now() - this.drawn;
    });
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The blocks that are being made in a session, whatever their texts are. */
export function useShape(voices: Voices, session: string): Live {
  return useSyncExternalStore(voices.subscribe, () => voices.shapeOf(session));
}

/** The text of a block that is being made; nothing once it is complete. */
export function useVoice(
  voices: Voices,
  session: string | undefined,
  key: string,
): string | undefined {
  const read = useCallback(
    () => (session ? voices.of(session).find((one) => one.key === key)?.text : undefined),
    [voices, session, key],
  );
  return useSyncExternalStore(voices.subscribe, read);
}
