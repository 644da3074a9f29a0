// Syntax colours of a diff: both files whole, so that a string or comment that begins above is right.
// They are shown when all of them are there, and not before.
import { useEffect, useState } from "react";
import type { Piece } from "../session/highlightCache";
import { type Patch, sideOf } from "./patch";

/** Characters of a file; a longer one has no colours. */
const LONGEST = 600_000;

export interface Colours {
  before: readonly Piece[][];
  after: readonly Piece[][];
}

/** The colours of each line, by its number less one. */
export function useColours(patch: Patch, path: string, whole: boolean): Colours | undefined {
  const [found, setFound] = useState<{ patch: Patch; colours: Colours }>();
  useEffect(() => {
    if (!whole || !patch.lines.length) return;
    const stop = new AbortController();
    // After the first paint: a diff can be read without colours.
    const timer = setTimeout(async () => {
      const { highlight } = await import("../session/highlight");
      const [before, after] = [sideOf(patch.lines, "before"), sideOf(patch.lines, "after")];
      const colours = {
        before: await highlight(before, path, stop.signal, LONGEST),
        after: await highlight(after, path, stop.signal, LONGEST),
      };
      if (!stop.signal.aborted) setFound({ patch, colours });
    }, 30);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [patch, path, whole]);
  return found?.patch === patch ? found.colours : undefined;
}
