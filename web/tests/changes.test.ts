import { afterEach, expect, test } from "vitest";
import { clearComments, commentsOf, promptOf, setComment } from "../src/changes/comments";
import { editorLink } from "../src/changes/editors";
import {
  blockStarts,
  foldedRows,
  pairedRows,
  parsePatch,
  sideOf,
  unfoldable,
} from "../src/changes/patch";

const HEAD = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n";
const whole = (changed: Record<number, string[]>, count: number): string => {
  const rows: string[] = [];
  for (let line = 1; line <= count; line += 1) rows.push(...(changed[line] ?? [` ${line}`]));
  return `${HEAD}@@ -1,${count} +1,${count} @@\n${rows.join("\n")}\n`;
};

afterEach(() => clearComments("s"));

test("lines have their numbers in both files, and blocks those of hunks without context", () => {
  const patch = parsePatch(whole({ 3: ["-3", "+three"], 9: [" 9", "+a", "+b"], 20: ["-20"] }, 30));
  expect(patch.blocks).toEqual([
    { old_start: 3, old_lines: 1, new_start: 3, new_lines: 1 },
    { old_start: 9, old_lines: 0, new_start: 10, new_lines: 2 },
    { old_start: 20, old_lines: 1, new_start: 21, new_lines: 0 },
  ]);
  expect(patch.lines.find((line) => line.text === "30")).toMatchObject({ before: 30, after: 31 });
  expect(sideOf(patch.lines, "after").split("\n").slice(0, 4)).toEqual(["1", "2", "three", "4"]);
  expect(blockStarts(patch.lines).get(1)).toBe(10);
});

test("new, deleted and empty files, files without a last newline, and rests of other files", () => {
  expect(parsePatch(`${HEAD}@@ -0,0 +1,2 @@\n+a\n+b\n`).blocks).toEqual([
    { old_start: 0, old_lines: 0, new_start: 1, new_lines: 2 },
  ]);
  expect(parsePatch(`${HEAD}@@ -1 +0,0 @@\n-a\n`).blocks).toEqual([
    { old_start: 1, old_lines: 1, new_start: 0, new_lines: 0 },
  ]);
  const ends = parsePatch(`${HEAD}@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n`);
  expect(ends.lines.map((line) => line.noNewline)).toEqual([true, undefined]);
  expect(parsePatch("").lines).toEqual([]);
  expect(parsePatch(`${HEAD}@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n+c\n`).lines).toHaveLength(2);
  expect(parsePatch(`${HEAD}@@ -1,2 +1,2 @@\n \n-a\n+\n`).lines.map((one) => one.text)).toEqual([
    "",
    "a",
    "",
  ]);
});

test("lines that a short patch leaves out are counted and cannot be unfolded", () => {
  const patch = parsePatch(`${HEAD}@@ -5,1 +5,1 @@\n-a\n+b\n@@ -50,0 +51,1 @@\n+c\n`);
  expect([...patch.gaps]).toEqual([
    [0, 4],
    [2, 45],
  ]);
  expect(patch.blocks[1]).toEqual({ old_start: 50, old_lines: 0, new_start: 51, new_lines: 1 });
  const rows = foldedRows(patch, new Set());
  expect(rows[0]).toEqual({ kind: "gap", from: 0, to: 0, count: 4 });
  expect(unfoldable({ from: 0, to: 0 }, "all")).toEqual([]);
});

test("unchanged lines are folded but for a little context, and unfold in steps", () => {
  const patch = parsePatch(whole({ 50: ["-50", "+fifty"] }, 100));
  const rows = foldedRows(patch, new Set());
  expect(rows[0]).toEqual({ kind: "gap", from: 0, to: 46, count: 46 });
  expect(rows.filter((row) => row.kind === "line")).toHaveLength(8);
  const more = new Set(unfoldable({ from: 0, to: 46 }, "up"));
  expect(foldedRows(patch, more)[0]).toEqual({ kind: "gap", from: 0, to: 26, count: 26 });
  expect(unfoldable({ from: 0, to: 46 }, "down")[0]).toBe(0);
  expect(foldedRows(patch, new Set(unfoldable({ from: 0, to: 46 }, "all")))[0]).toEqual({
    kind: "line",
    index: 0,
  });
  // A single line is shown as it is.
  const near = parsePatch(whole({ 4: ["-4", "+x"], 12: ["-12", "+y"] }, 13));
  expect(foldedRows(near, new Set()).every((row) => row.kind === "line")).toBe(true);
});

test("in two columns what was removed is beside what was added", () => {
  const patch = parsePatch(`${HEAD}@@ -1,3 +1,4 @@\n a\n-b\n+B\n+C\n d\n`);
  const pairs = pairedRows(patch.lines, foldedRows(patch, new Set()));
  expect(pairs).toEqual([
    { kind: "pair", left: 0, right: 0 },
    { kind: "pair", left: 1, right: 2 },
    { kind: "pair", left: undefined, right: 3 },
    { kind: "pair", left: 4, right: 4 },
  ]);
});

test("10,000 lines are read and folded at once", () => {
  const changed: Record<number, string[]> = {};
  for (let line = 1; line <= 10_000; line += 5) changed[line] = [`-${line}`, `+x${line}`];
  const patch = parsePatch(whole(changed, 10_000));
  expect(patch.blocks).toHaveLength(2000);
  expect(foldedRows(patch, new Set())).toHaveLength(12_000);
});

test("comments are kept, replaced, removed, and become one prompt", () => {
  const base = { path: "b.py", side: "after" as const, line: 12, code: "x = 1" };
  setComment("s", { ...base, text: "Why?" });
  setComment("s", { ...base, text: "Why one?" });
  setComment("s", { ...base, path: "a.py", side: "before", line: 3, text: "Keep this" });
  expect(localStorage.getItem("quarterdeck.draft.review.s")).toContain("Why one?");
  expect(promptOf(commentsOf("s"), "Please:", "before")).toBe(
    "Please:\n\na.py:3 (before)\n> x = 1\nKeep this\n\nb.py:12\n> x = 1\nWhy one?",
  );
  setComment("s", { ...base, text: "  " });
  expect(commentsOf("s")).toHaveLength(1);
});

test("a link for an editor names the file and the line, and nothing else", () => {
  expect(editorLink("vscode", "/a b/ü#?.ts", 7)).toBe("vscode://file/a%20b/%C3%BC%23%3F.ts:7");
  expect(editorLink("idea", "/x", 1)).toBe("idea://open?file=%2Fx&line=1");
  expect(editorLink("none", "/x")).toBeUndefined();
  expect(editorLink("zed", "javascript:x")).toBeUndefined();
});
