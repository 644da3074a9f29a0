import { describe, expect, it } from "vitest";
import type { Stored } from "../src/api/types";
import { entriesBefore } from "../src/panels/policy/Audit";
import { eachDay } from "../src/panels/Usage";

describe("the audit log", () => {
  const log = [3, 40, 900, 2100, 2101].map(
    (position) => ({ position, event: { kind: "decided" } }) as Stored,
  );
  const ask = async (after: number) => {
    const events = log.filter((one) => one.position > after).slice(0, 2);
    return { events, next: events.at(-1)?.position ?? null };
  };

  it("is read from its end, each entry once", async () => {
    const [newest, begin] = await entriesBefore(2101, ask, 2);
    expect(newest.map((one) => one.position)).toEqual([2101, 2100]);
    const [older, first] = await entriesBefore(begin, ask, 50);
    expect(older.map((one) => one.position)).toEqual([900, 40, 3]);
    expect(first).toBe(0);
  });
});

describe("usage by day", () => {
  it("has the days on which nothing was used", () => {
    expect(eachDay("2026-02-27", "2026-03-01")).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
  });
});
