// Finding words in a story: in what is loaded, letter by letter. Pure.
import { plainText } from "./contentBlocks";
import type { Entry } from "./entries";
import type { Story } from "./story";
import { titleOf } from "./tools";

/** Letters of one text that are searched: an output may have megabytes. */
const MOST = 200_000;

/** The numbers of the events whose entries have these words, in the order of the story. */
export function findInStory(story: Story, words: string): number[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const found = new Set<number>();
  for (const entry of story.entries) {
    if (!entry.seq || found.has(entry.seq)) continue;
    const own = textsOf(entry);
    const inner = entry.kind === "tool" ? (story.threads.get(entry.id) ?? []).flatMap(textsOf) : [];
    if ([...own, ...inner].some((one) => one.slice(0, MOST).toLowerCase().includes(wanted))) {
      found.add(entry.seq);
    }
  }
  return [...found];
}

/** What a person can read of an entry. */
function textsOf(entry: Entry): string[] {
  switch (entry.kind) {
    case "prompt":
    case "text":
    case "thinking":
    case "note":
    case "mark":
    case "turn":
      return [entry.text];
    case "tool":
      return [
        `${entry.name} ${titleOf(entry.name, entry.input)}`,
        ...Object.values(entry.input).map((value) =>
          typeof value === "string" ? value : JSON.stringify(value),
        ),
        plainText(entry.result),
      ];
    case "ask":
      return [entry.opened.title ?? ""];
    default:
      return [];
  }
}
