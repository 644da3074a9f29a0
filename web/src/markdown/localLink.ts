// Links to files of the session's folder, in the agent's text. Pure.

import { changesPath } from "../changes/paths";
import { relativeTo } from "../session/relativePath";

export interface LocalFile {
  path: string;
  line?: number;
}

const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/**
 * The file that a link names: a path, with a line behind `:`, `#L` or `#`. A link with a scheme, with
 * `//`, or to a part of the same text is none. The hub decides whether the file may be read.
 */
export function localFile(to: string): LocalFile | undefined {
  const given = to.startsWith("file:///") ? to.slice("file://".length) : to;
  if (!given || given.length > 1024 || given.startsWith("#") || given.startsWith("//")) {
    return undefined;
  }
  if (SCHEME.test(given) && !/^[^:/]+\.[a-z0-9]+:\d+/i.test(given)) return undefined;
  const [, raw = "", line] =
    /^(.*?)(?:#L?(\d{1,7})(?:-L?\d+)?|:(\d{1,7})(?::\d+)?)?$/.exec(given) ?? [];
  const found = line ?? /:(\d{1,7})(?::\d+)?$/.exec(given)?.[1];
  let path: string;
  try {
    path = decodeURIComponent(raw.replace(/[?#].*$/, ""));
  } catch {
    path = raw;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no path of a link has them
  if (!path || /[\u0000-\u001f]/.test(path)) return undefined;
  return { path, ...(found ? { line: Number(found) } : {}) };
}

/** Where the page shows a file of a session, which works in this folder. */
export function fileAddress(session: string, folder: string, { path, line }: LocalFile): string {
  const file = relativeTo(path, folder).replace(/^(?:\.\/)+/, "");
  const params = new URLSearchParams({ part: "files", file });
  if (line !== undefined) params.set("line", String(line));
  return `${changesPath(session)}?${params}`;
}
