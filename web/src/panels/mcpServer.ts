// An MCP server from what a person typed. Pure.

export interface TypedServer {
  name: string;
  kind: string;
  /** A command with its arguments, or an address. */
  place: string;
}

/** The words of a command line: quotes keep blanks, a backslash keeps the next letter. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? "";
    if (letter === "\\" && quote !== "'") {
      at += 1;
      word = (word ?? "") + (line[at] ?? "");
    } else if (quote) {
      if (letter === quote) quote = "";
      else word = (word ?? "") + letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= "";
    } else if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + letter;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** Its configuration as the CLI takes it; undefined if something is missing. */
export function serverConfig(typed: TypedServer): Record<string, unknown> | undefined {
  const place = typed.place.trim();
  if (!/^[\w.-]{1,64}$/.test(typed.name) || !place) return undefined;
  if (typed.kind === "stdio") {
    const [command, ...args] = wordsOf(place);
    return command ? { type: "stdio", command, args } : undefined;
  }
  return /^https?:\/\//i.test(place) && URL.canParse(place)
    ? { type: typed.kind, url: place }
    : undefined;
}
