import { describe, expect, it } from "vitest";
import { callOf, decidedBy } from "../src/panels/policy/Audit";
import { eachDay } from "../src/panels/Usage";

describe("the audit log", () => {
  it("names a tool once", () => {
    expect(callOf("ExitPlanMode", "ExitPlanMode")).toEqual({ tool: "ExitPlanMode", title: "" });
    expect(callOf("Read", "Read a.py")).toEqual({ tool: "Read", title: "a.py" });
    expect(callOf("Bash", "Bashful")).toEqual({ tool: "Bash", title: "Bashful" });
  });

  it("names the call of a person's answer", () => {
    const entry = (session: string, event: object) => ({ session, event }) as never;
    const answer = entry("s", { kind: "ask.answered", ask: "s.1" });
    const made = { kind: "decided", ask: "s.1", tool: "Bash", title: "npm test" };
    const other = entry("t", { ...made, title: "rm x" });
    expect(decidedBy(answer, [other, answer, entry("s", made)])).toEqual(made);
    expect(decidedBy(answer, [other, answer])).toBeUndefined();
  });
});

describe("usage by day", () => {
  it("has the days on which nothing was used", () => {
    expect(eachDay("2026-02-27", "2026-03-01")).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
  });
});
