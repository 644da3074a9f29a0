// What the events of one session come to, as a person reads them: a pure fold.
//
// `tell` takes events in their order and gives another story; what was given before is never
// changed. Entries keep their identity when nothing about them changes, so that a row is drawn again
// only if it must be.
import type { EventOf, Stored } from "../api/types";
import type { Entry, Task, Todo } from "./entries";
import { lookup } from "./lookup";
import { Teller } from "./teller";

export * from "./entries";

export interface Story {
  /** The numbers of the first and of the last event that it is made of. */
  first: number;
  last: number;
  entries: readonly Entry[];
  /** What subagents do, by the tool call that they work for. */
  threads: ReadonlyMap<string, readonly Entry[]>;
  /** How many blocks of each message were said: a block's number is its key, also while it is made. */
  blocks: ReadonlyMap<string, number>;
  tasks: ReadonlyMap<string, Task>;
  todos: readonly Todo[];
  commands: readonly { name: string; description: string }[];
  models: readonly string[];
  model: string;
  mode: string;
  tools: readonly string[];
  limit: EventOf<"rate_limited"> | undefined;
  alarm: EventOf<"alarm"> | undefined;
}

export const BLANK: Story = {
  first: 0,
  last: 0,
  entries: [],
  threads: new Map(),
  blocks: new Map(),
  tasks: new Map(),
  todos: [],
  commands: [],
  models: [],
  model: "",
  mode: "",
  tools: [],
  limit: undefined,
  alarm: undefined,
};

/** The story with these events, which follow those that it has. */
export function tell(story: Story, events: readonly Stored[]): Story {
  const fresh = events.filter((stored) => stored.seq > story.last);
  if (!fresh.length) return story;
  const teller = new Teller(story);
  for (const stored of fresh) teller.take(stored);
  return teller.done();
}

/** The story of these events, of which the last are those of another story: what is alike stays. */
export function retold(known: Story, events: readonly Stored[]): Story {
  const story = tell(BLANK, events);
  const before = new Map(known.entries.map((entry) => [entry.key, entry]));
  const entries = story.entries.map((entry) => {
    const old = before.get(entry.key);
    return old && alike(old, entry) ? old : entry;
  });
  return { ...story, entries };
}

/** Whether two values of the same form say the same. */
function alike(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  const [mine, theirs] = [Object.entries(one), Object.entries(other)];
  return (
    mine.length === theirs.length &&
    mine.every(([name, value]) => alike(value, lookup(other as Record<string, unknown>, name)))
  );
}
