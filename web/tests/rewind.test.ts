import { expect, test } from "vitest";
import type { Session } from "../src/api/types";
import { asPatch, parsePatch } from "../src/changes/patch";
import { goesBackInPlace } from "../src/rewind/api";
import { relatives } from "../src/rewind/Checkpoints";
import { mergedFiles } from "../src/rewind/ComparePage";

test("versions from 2.1.200 on go back with their conversation", () => {
  expect(["2.1.199", "2.1.37", "", null, "x"].map(goesBackInPlace)).not.toContain(true);
  expect(["2.1.200", "2.1.325", "2.2.0", "3.0.1"].map(goesBackInPlace)).not.toContain(false);
});

test("relatives are the parent, the forks, and the other forks of the parent", () => {
  const make = (session: string, parent: string | null): Session =>
    ({ session, parent }) as unknown as Session;
  const all = [make("a", null), make("b", "a"), make("c", "a"), make("d", "b"), make("e", null)];
  const sessions = new Map(all.map((one) => [one.session, one]));
  const of = (id: string): string[] =>
    relatives(sessions, sessions.get(id) as Session).map((one) => one.session);
  expect(of("a")).toEqual(["b", "c"]);
  expect(of("b")).toEqual(["a", "c", "d"]);
  expect(of("e")).toEqual([]);
});

test("the files of two sessions are each listed once", () => {
  const file = (path: string) => ({ path, status: "modified" });
  const merged = mergedFiles([file("b"), file("a")], [file("b"), file("c")]);
  expect(merged.map(({ path, one, other }) => [path, Boolean(one), Boolean(other)])).toEqual([
    ["a", true, false],
    ["b", true, true],
    ["c", false, true],
  ]);
});

test("a file is shown like a patch without changes", () => {
  const { lines, blocks } = parsePatch(asPatch("a\n\nb\n"));
  expect(lines.map((line) => line.text)).toEqual(["a", "", "b"]);
  expect(blocks).toEqual([]);
});
