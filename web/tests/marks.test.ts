import { describe, expect, it } from "vitest";
import golden from "../../tests/fixtures/marks.json";
import { LETTERS, SIGNS } from "../src/ui/lookAlikes";
import { escapedJson, hasMarks, MARKED, segmentsOf, withMarks } from "../src/ui/marks";

const name = (code: number): string => code.toString(16).toUpperCase().padStart(4, "0");

describe("what a person would not see", () => {
  it.each(golden.cases.map((one) => [one.name, one] as const))("is marked: %s", (_, one) => {
    const code = "code" in one && one.code === true;
    expect(withMarks(one.text, code)).toBe(one.shown);
    expect(
      segmentsOf(one.text, code)
        .map((piece) => piece.text)
        .join(""),
    ).toBe(one.text);
    expect(hasMarks(one.text, code)).toBe(one.text !== one.shown);
  });

  it("is what the terminal marks, too", () => {
    expect(MARKED.map((range) => range.map(name))).toEqual(golden.marked);
  });

  it("is what looks like another character in the terminal, too", () => {
    const codes = (table: Readonly<Record<string, string>>) =>
      Object.fromEntries(
        Object.entries(table).map(([one, others]) => [
          one,
          [...others].map((each) => name(each.codePointAt(0) ?? 0)),
        ]),
      );
    expect({ letters: codes(LETTERS), signs: codes(SIGNS) }).toEqual(golden.look_alikes);
  });

  it("has every control, format, separator and private character in it, and every odd blank", () => {
    const missed: string[] = [];
    for (let code = 0; code < 0x110000; code++) {
      const character = String.fromCodePoint(code);
      if (!/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\p{DI}]/u.test(character)) continue;
      if (" \n\t".includes(character)) continue;
      if (withMarks(`a${character}b`) !== `a⟨U+${name(code)}⟩b`) missed.push(name(code));
    }
    expect(missed).toEqual([]);
  });

  it("is an escape in JSON that is edited, which says the same", () => {
    const input = { command: "make \u2067; x\u202e \u{e0041} ok ❤\ufe0f", "k\u200b": "\ud800" };
    const json = escapedJson(JSON.stringify(input, null, 2));
    expect(JSON.parse(json)).toEqual(input);
    expect(json).toContain("\\u2067; x\\u202E \\uDB40\\uDC41 ok ❤\ufe0f");
    expect(hasMarks(json)).toBe(false);
  });
});
