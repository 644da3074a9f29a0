// What the hub tells as a code has words here; what an older hub told as a sentence stays.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { alarmText, codedText, endText, textOf } from "../src/state/coded";
import { text } from "../src/text";

const SOURCE = join(process.cwd(), "../src/quarterdeck/domain/coded.py");

/** The codes of an enumeration of the hub. */
function codesOf(name: string): string[] {
  const [, rest] = readFileSync(SOURCE, "utf8").split(`class ${name}(StrEnum):`);
  const [body] = (rest ?? "").split("\nclass ");
  return [...(body ?? "").matchAll(/^ {4}[A-Z_]+ = "([a-z_]+)"/gm)].map(([, code]) => code ?? "");
}

describe("a code", () => {
  it("has words, each of them", () => {
    const codes = codesOf("TextCode");
    expect(codes.length).toBeGreaterThan(50);
    expect(Object.keys(text.coded.texts).sort()).toEqual(codes.sort());
    expect(Object.keys(text.coded.acts).sort()).toEqual(codesOf("AlarmAct").sort());
  });

  it("shows its parameters, and what it is caused by", () => {
    expect(codedText({ code: "no_result", seconds: 901 })).toContain("901 s");
    const more = { code: "process_ended", exit_code: 3 };
    expect(codedText({ code: "empty_resume", more })).toContain("exit code 3");
  });

  it("of a newer hub is shown with what others said", () => {
    expect(codedText({ code: "something_new", detail: "no room" })).toBe("something new: no room");
  });
});

describe("an event", () => {
  it("of an older hub keeps its sentence", () => {
    expect(textOf(undefined, "It is away.")).toBe("It is away.");
    expect(endText({ kind: "run.ended", run: "r", reason: "It was killed." })).toBe(
      "It was killed.",
    );
    const alarm = { kind: "alarm", alarm: "no_result", text: "Silent.", action: "ended" } as const;
    expect(alarmText(alarm)).toBe("Silent. ended");
  });

  it("says how a process ended, and what was done about an alarm", () => {
    const ended = { kind: "run.ended", run: "r", reason: "", signal: 9, exit_code: -9 } as const;
    expect(endText({ ...ended, coded: { code: "process_ended" } })).toContain("SIGKILL");
    const coded = { code: "no_result", seconds: 60 };
    const alarm = { kind: "alarm", alarm: "no_result", text: "", coded } as const;
    expect(alarmText({ ...alarm, act: "turn_interrupted" })).toContain("interrupted");
  });
});
