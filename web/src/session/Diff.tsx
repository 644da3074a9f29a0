import { diffLines } from "diff";
import { memo, useMemo, useState } from "react";
import type { FileEdit, Hunk } from "../state/tools";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Marked } from "../ui/Marked";
import { segmentsOf, withMarks } from "../ui/marks";
import { renderHighlighted } from "./CodeBlock";
import styles from "./code.module.css";
import type { Piece } from "./highlightCache";
import { useRelativePath } from "./relativePath";
import { useRowColours } from "./rowColours";

/** Unchanged lines that are shown before and after a change. */
export const CONTEXT = 3;
/** Rows that are rendered at once. */
export const MOST = 2000;
/** Empty lines in a row that are shown as they are. */
const MOST_EMPTY = 3;

const HARDEST = 4000;

type Sign = " " | "+" | "-" | "…";
export interface Row {
  sign: Sign;
  text: string;
  /** How many lines it stands for, if more than one. */
  lines?: number;
  /** Its number in the new file; for a line that is removed, in the old one; 0 for a note of diff. */
  number?: number;
}

/**
 * The changed lines with a little context. No changed line is left out. With `whole` both are whole files,
 * and each row has its number.
 */
export function rowsOf(before: string, after: string, whole = false): Row[] {
  // Two texts that have next to nothing in common would take for ever: then one replaces the other.
  const parts = diffLines(before, after, { maxEditLength: HARDEST }) ?? [
    { value: before, removed: true, added: false },
    { value: after, added: true, removed: false },
  ];
  const plain = parts.flatMap((part): Row[] => {
    if (!part.value) return [];
    const lines = part.value.replace(/\n$/, "").split("\n");
    const sign = part.added ? "+" : part.removed ? "-" : " ";
    return lines.map((text) => ({ sign, text }));
  });
  const rows = whole ? withNumbers(plain, 1, 1) : plain;
  const near = rows.map((_, index) =>
    rows.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some((row) => row.sign !== " "),
  );
  const found: Row[] = [];
  rows.forEach((row, index) => {
    const last = found.at(-1);
    if (near[index]) found.push(row);
    else if (last?.sign === "…") last.lines = (last.lines ?? 0) + 1;
    else found.push({ sign: "…", text: "", lines: 1 });
  });
  return withoutEmptyRuns(found);
}

/** The rows with their numbers, which begin with these in the old and the new file. */
function withNumbers(rows: readonly Row[], old: number, now: number): Row[] {
  const next = { old, now };
  return rows.map((row) => {
    if (row.number === 0) return row;
    const number = row.sign === "-" ? next.old : next.now;
    if (row.sign !== "+") next.old += 1;
    if (row.sign !== "-") next.now += 1;
    return { ...row, number };
  });
}

/** Many empty lines in a row would push what comes after them out of sight: they are counted. */
function withoutEmptyRuns(rows: readonly Row[]): Row[] {
  const found: Row[] = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    if (!row) break;
    let end = at;
    while (
      row.sign !== "…" &&
      rows[end]?.sign === row.sign &&
      /^[ \t]*$/.test(rows[end]?.text ?? "x")
    )
      end += 1;
    const count = end - at;
    if (count > MOST_EMPTY) found.push({ ...row, text: "", lines: count });
    else found.push(...rows.slice(at, Math.max(end, at + 1)));
    at = Math.max(end, at + 1);
  }
  return found;
}

/** The lines of a change that was made, at their places in the file. */
export function patchRows(hunks: readonly Hunk[]): Row[] {
  return hunks.flatMap((hunk): Row[] => [
    { sign: "…", text: catalogue.parts.atLine(hunk.start) },
    ...withNumbers(
      hunk.lines.map((line): Row => {
        const sign = line[0] === "+" || line[0] === "-" ? line[0] : " ";
        return { sign, text: line.slice(1), ...(line[0] === "\\" ? { number: 0 } : {}) };
      }),
      hunk.oldStart ?? hunk.start,
      hunk.start,
    ),
  ]);
}

/** How many lines the rows with a sign stand for. */
export function linesOf(rows: readonly Row[], sign?: Sign): number {
  return rows
    .filter((row) => sign === undefined || row.sign === sign)
    .reduce((sum, row) => sum + (row.lines ?? 1), 0);
}

export const editRows = ({ before, after, hunks, whole }: FileEdit): Row[] =>
  hunks ? patchRows(hunks) : rowsOf(before, after, whole);

/** A change to a file. With `rows`, the caller offers the rest. */
export const Diff = memo(function Diff({ edit, rows: most }: { edit: FileEdit; rows?: number }) {
  const path = useRelativePath(edit.path);
  const [more, setMore] = useState(MOST);
  const rows = useMemo(() => editRows(edit), [edit]);
  const visible = rows.slice(0, most ?? more);
  const colours = useRowColours(rows, edit.path);
  const numbered = rows.some((row) => row.number !== undefined);
  return (
    <figure className={styles.diff} data-numbered={numbered || undefined}>
      <figcaption>
        <span
          className={`${css.texts.path} ${styles.path}`}
          data-path=""
          title={withMarks(edit.path)}
        >
          <Marked text={path} code />
        </span>
        <span className={styles.plus}>+{linesOf(rows, "+")}</span>
        <span className={styles.minus}>−{linesOf(rows, "-")}</span>
      </figcaption>
      <pre tabIndex={0}>
        {visible.map((row, index) => (
          <span
            key={index}
            className={styles.row}
            data-sign={row.sign}
            data-line={row.number || undefined}
          >
            <span className={styles.sign} aria-hidden="true" data-no-copy>
              {row.sign}
            </span>
            <RowText row={row} colours={colours?.get(index)} />
            {"\n"}
          </span>
        ))}
      </pre>
      {most === undefined && rows.length > more && (
        <button
          type="button"
          className={`${css.button.ghost} ${css.button.small}`}
          onClick={() => setMore(more + MOST)}
        >
          {catalogue.parts.showMoreLines(linesOf(rows.slice(more)))}
        </button>
      )}
    </figure>
  );
});

function RowText({ row, colours }: { row: Row; colours: Piece[] | undefined }) {
  if (row.lines === undefined && row.sign !== "…" && colours?.length) {
    return (
      <bdi className={css.marked.marked} data-code="" dir="ltr">
        {renderHighlighted(segmentsOf(row.text, true), [colours])}
      </bdi>
    );
  }
  if (row.lines === undefined) return <Marked text={row.text} code />;
  if (row.sign === "…") return catalogue.parts.unchangedLines(row.lines);
  return <span className={css.marked.mark}>{catalogue.parts.emptyLines(row.lines)}</span>;
}
