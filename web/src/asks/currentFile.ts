// The file that a call would replace, as it is now: read from its machine while the question is open.
import { useEffect, useState } from "react";
import { errorText, get } from "../api/http";
import type { components } from "../api/schema";
import type { AskOpened } from "../api/types";
import { lookup } from "../state/lookup";
import { text } from "../text";
import { lineCount } from "../ui/marks";

export type SeenFile = components["schemas"]["SeenFile"];

export interface CurrentFile {
  /** Undefined until the first answer. */
  file?: SeenFile;
  /** Why it is not known. */
  error?: string;
  /** Whether it has changed since it was read first. */
  changed: boolean;
}

/** Calls whose file is shown: as it is replaced, or around what is changed. */
const CHANGES: ReadonlySet<string> = new Set(["Write", "Edit"]);

const UNKNOWN: CurrentFile = { changed: false };
/** In ms: how often it is read again. The agent is waiting; only others change it meanwhile. */
const AGAIN = 30_000;

/** Reads the file of a call that changes one, as long as the question is shown. */
export function useCurrentFile(opened: AskOpened, wanted: boolean): CurrentFile {
  const [current, setCurrent] = useState<CurrentFile>(UNKNOWN);
  const { ask } = opened;
  const reads = wanted && CHANGES.has(opened.tool);
  useEffect(() => {
    if (!reads) return;
    let left = false;
    const read = async (): Promise<void> => {
      try {
        const file = await get<SeenFile>(`/api/asks/${encodeURIComponent(ask)}/file`);
        if (!left) setCurrent((before) => withFile(before, file));
      } catch (error) {
        // The question was answered meanwhile, or the connection is lost: what was read stays.
        if (!left)
          setCurrent((before) => (before.file ? before : { ...before, error: errorText(error) }));
      }
    };
    void read();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void read();
    }, AGAIN);
    return () => {
      left = true;
      clearInterval(timer);
    };
  }, [ask, reads]);
  return current;
}

/** Whether the card of a call is not complete yet: its file is being read. */
export function isReading(opened: AskOpened, wanted: boolean, current: CurrentFile): boolean {
  const known = current.file !== undefined || current.error !== undefined;
  return wanted && CHANGES.has(opened.tool) && !known;
}

/** The same object if nothing has changed: a card with the same content is not another card. */
export function withFile(before: CurrentFile, file: SeenFile): CurrentFile {
  const known = before.file;
  if (known && known.state === file.state && known.text === file.text) return before;
  return { file, changed: known !== undefined };
}

const words = text.states.replaces;

/** What happens to the file, in words. */
export function replacementText(
  { file, error }: CurrentFile,
  after: string,
  reading = true,
): string {
  if (error !== undefined) return words.unknown(error);
  if (!file) return reading ? words.reading : words.notRead;
  if (file.state === "missing") return words.creates;
  if (file.state !== "text") return words.hidden(lookup(words.why, file.state) ?? file.state);
  if (file.text === after) return words.same;
  return words.differs(lineCount(file.text ?? ""));
}

/** Why the lines around an edit are not shown; nothing where they are. */
export function surroundingsText({ file, error }: CurrentFile, reading: boolean): string {
  const { edits } = words;
  if (error !== undefined) return edits.unknown(error);
  if (!file) return reading ? edits.reading : "";
  if (file.state === "text") return "";
  if (file.state === "missing") return edits.missing;
  return edits.unknown(`${lookup(words.why, file.state) ?? file.state}.`);
}
