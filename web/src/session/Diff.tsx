import { diffLines } from "diff";
import { memo, useMemo } from "react";
import type { FileEdit } from "../state/tools";

const CONTEXT = 3;
const MOST = 2000;

interface Row {
  sign: " " | "+" | "-" | "…";
  text: string;
}

/** The lines of a change, with a little of what is around it. */
export function rowsOf(before: string, after: string): Row[] {
  const rows = diffLines(before, after).flatMap((part): Row[] => {
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

/** A change to a file. */
export const Diff = memo(function Diff({ edit }: { edit: FileEdit }) {
  const rows = useMemo(() => rowsOf(edit.before, edit.after), [edit.before, edit.after]);
  const added = rows.filter((row) => row.sign === "+").length;
  const removed = rows.filter((row) => row.sign === "-").length;
  return (
    <figure className="diff">
      <figcaption>
        <span className="path">{edit.path}</span>
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
