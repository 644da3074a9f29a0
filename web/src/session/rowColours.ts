// Syntax colours of a small diff, for each of its rows. They are shown when all of them are there.
import { useEffect, useMemo, useState } from "react";
import { addToCache, cached, type Piece } from "./highlightCache";

/** What the colours need of a row. */
interface Coloured {
  sign: string;
  text: string;
  lines?: number;
}
type Side = "before" | "after";

/** The lines of one side, with the place of each among the rows. Folded lines are left out. */
export function sideOfRows(
  rows: readonly Coloured[],
  side: Side,
): { code: string; places: number[] } {
  const other = side === "before" ? "+" : "-";
  const places = rows.flatMap(({ sign, lines }, place) =>
    sign === other || sign === "…" || lines !== undefined ? [] : [place],
  );
  return { code: places.map((place) => rows[place]?.text ?? "").join("\n"), places };
}

/** The colours of each row, by its place; undefined until they are known. */
export function useRowColours(
  rows: readonly Coloured[],
  path: string,
): ReadonlyMap<number, Piece[]> | undefined {
  const sides = useMemo(() => [sideOfRows(rows, "before"), sideOfRows(rows, "after")], [rows]);
  const [known, setKnown] = useState(0);
  useEffect(() => {
    if (sides.every(({ code }) => cached(code, path))) return;
    const stop = new AbortController();
    // After the first paint: a diff can be read without colours.
    const timer = setTimeout(async () => {
      const { highlight } = await import("./highlight");
      const found: Piece[][][] = [];
      for (const { code } of sides) found.push(await highlight(code, path, stop.signal));
      if (stop.signal.aborted) return;
      sides.forEach(({ code }, side) => {
        addToCache({ code, language: path, lines: found[side] ?? [] });
      });
      setKnown((before) => before + 1);
    }, 80);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [sides, path]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the cache has changed
  return useMemo(() => {
    const colours = new Map<number, Piece[]>();
    for (const { code, places } of sides) {
      const lines = cached(code, path)?.lines;
      if (!lines) return undefined;
      // Unchanged rows are in both sides; the new one counts.
      places.forEach((place, line) => {
        colours.set(place, lines[line] ?? []);
      });
    }
    return colours;
  }, [sides, path, known]);
}
