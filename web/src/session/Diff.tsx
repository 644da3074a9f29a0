import { diffLines } from "diff";
import { memo, useMemo } from "react";
import type { FileEdit, Hunk } from "../state/tools";
import { useShort } from "./folder";

const CONTEXT = 3;
const MOST = 2000;

const HARDEST = 4000;

type Sign = " " | "+" | "-" | "…";
interface Row {
  sign: Sign;
  text: string;
}

/** The lines of a change, with a little of what is around it. */
export function rowsOf(before: string, after: string): Row[] {
  // Two texts that have next to nothing in common would take for ever: then one replaces the other.
  const parts = diffLines(before, after, { maxEditLength: HARDEST }) ?? [
    { value: before, removed: true, added: false },
    { value: after, added: true, removed: false },
  ];
  const rows = parts.flatMap((part): Row[] => {
    const lines = part.value.replace(/\n$/, "").split("\n");
    const sign = part.added ? "+" : part.removed ? "-" : " ";
    return lines.map((text) => ({ sign, text }));
  });
  const near = rows.map((_, index) =>
    rows.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some((row) => row.sign !== " "),
  );
  const shown: Row[] = [];
  rows.slice(0, MOST).forEach((row, index) => {
    if (near[index]) shown.push(row);
    else if (shown.at(-1)?.sign !== "…") shown.push({ sign: "…", text: "" });
  });
  if (rows.length > MOST) shown.push({ sign: "…", text: `${rows.length - MOST} lines more` });
  return shown;
}

/** The lines of a change that was made, at their places in the file. */
export function madeRows(hunks: readonly Hunk[]): Row[] {
  const rows = hunks.flatMap((hunk): Row[] => [
    { sign: "…", text: `line ${hunk.start}` },
    ...hunk.lines.map((line): Row => {
      const sign = line[0] === "+" || line[0] === "-" ? line[0] : " ";
      return { sign, text: line.slice(1) };
    }),
  ]);
  return rows.slice(0, MOST);
}

/** A change to a file. */
export const Diff = memo(function Diff({ edit }: { edit: FileEdit }) {
  const { before, after, hunks } = edit;
  const path = useShort(edit.path);
  const rows = useMemo(
    () => (hunks ? madeRows(hunks) : rowsOf(before, after)),
    [before, after, hunks],
  );
  const added = rows.filter((row) => row.sign === "+").length;
  const removed = rows.filter((row) => row.sign === "-").length;
  return (
    <figure className="diff">
      <figcaption>
        <span className="path" title={edit.path}>
          <bdi>{path}</bdi>
        </span>
        <span className="plus">+{added}</span>
        <span className="minus">−{removed}</span>
      </figcaption>
      <pre tabIndex={0}>
        {rows.map((row, index) => (
          <span key={index} className="row" data-sign={row.sign}>
            <span className="sign" aria-hidden="true">
              {row.sign}
            </span>
            {row.text}
            {"\n"}
          </span>
        ))}
      </pre>
    </figure>
  );
});
