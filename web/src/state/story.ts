// The story of one session: what a person reads of its events. A pure fold.
//
// The story is not the session's state, which is in the hub's view. `foldEvents` takes events in their
// order and gives another story; a story is never changed. Entries keep their identity while nothing
// about them changes, so that only changed rows are rendered again.
import type { Stored } from "../api/types";
import type { Entry, OpenTurn, Task } from "./entries";
import { StoryFold } from "./foldStory";
import { lookup } from "./lookup";

export * from "./entries";

export interface Story {
  /** The numbers of the first and of the last event that it is made of. */
  first: number;
  last: number;
  entries: readonly Entry[];
  /** The entries of subagents, by the tool call that started them. */
  threads: ReadonlyMap<string, readonly Entry[]>;
  /** How many blocks of each message are complete: a block's number is its key, also in live text. */
  blocks: ReadonlyMap<string, number>;
  tasks: ReadonlyMap<string, Task>;
  /** The CLI's id of the conversation at its end, if its events tell it. */
  conversation?: string;
  /** The turn that runs at its end. */
  turn?: OpenTurn | undefined;
  /** Prompts whose turns have not ended; undefined while the events do not tell them all. */
  sent?: ReadonlySet<string> | undefined;
  /** What may start a turn that nobody prompted. */
  cause?: string | undefined;
  /** A turn runs that nobody prompted, and its cause is not told yet. */
  owed?: boolean | undefined;
  /** Questions that wait for an answer, by what they are called, and since when one does. */
  asked: ReadonlySet<string>;
  askedAt: number;
}

export const EMPTY_STORY: Story = {
  first: 0,
  last: 0,
  entries: [],
  threads: new Map(),
  blocks: new Map(),
  tasks: new Map(),
  asked: new Set(),
  askedAt: 0,
};

/** The story with these events, which follow those that it has. */
export function foldEvents(story: Story, events: readonly Stored[]): Story {
  const fresh = events.filter((stored) => stored.seq > story.last);
  if (!fresh.length) return story;
  const fold = new StoryFold(story);
  for (const stored of fresh) fold.take(stored);
  return fold.done();
}

/** The story of these events, which end with those of a known story: equal entries stay the same. */
export function refoldStory(known: Story, events: readonly Stored[]): Story {
  const story = foldEvents(EMPTY_STORY, events);
  const before = new Map(known.entries.map((entry) => [entry.key, entry]));
  const entries = story.entries.map((entry) => {
    const old = before.get(entry.key);
    return old && isEqual(old, entry) ? old : entry;
  });
  return { ...story, entries };
}

/** The entries of an earlier conversation of the session; undefined while its end is not loaded. */
export function earlierConversation(
  entries: readonly Entry[],
  conversation: string,
): readonly Entry[] | undefined {
  const end = entries.findLastIndex(
    (one) => one.kind === "mark" && one.conversation?.before === conversation,
  );
  if (end < 0) return undefined;
  const start = entries.findLastIndex(
    (one, index) => index < end && one.kind === "mark" && one.conversation !== undefined,
  );
  return entries.slice(start + 1, end);
}

/** Whether two JSON values are equal. */
function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  const [mine, theirs] = [Object.entries(one), Object.entries(other)];
  return (
    mine.length === theirs.length &&
    mine.every(([name, value]) => isEqual(value, lookup(other as Record<string, unknown>, name)))
  );
}
