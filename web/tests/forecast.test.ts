import { describe, expect, it } from "vitest";
import { limitReached, monthForecast, pace } from "../src/panels/forecast";

const DAY = 86_400_000;

describe("a forecast", () => {
  it("takes the last seven days, those without usage too", () => {
    const byDay = new Map([
      ["2026-11-01", 100],
      ["2026-11-11", 7],
      ["2026-11-17", 14],
    ]);
    expect(pace(byDay, "2026-11-17")).toBe(3);
    // 121 so far, and 13 days are left.
    expect(monthForecast(byDay, "2026-11-17")).toBe(121 + 13 * 3);
    expect(monthForecast(new Map(), "2026-02-28")).toBe(0);
    expect(monthForecast(new Map([["2026-10-31", 70]]), "2026-11-01")).toBe(29 * 10);
  });

  it("tells when a limit is reached, if that is before its reset", () => {
    const reset = 7 * DAY;
    const limit = { limit: "seven_day", resets_at: reset };
    // Half of it in two days: the rest in two more.
    expect(limitReached({ ...limit, used: 0.5, at: 2 * DAY })).toBe(4 * DAY);
    expect(limitReached({ ...limit, used: 0.2, at: 2 * DAY })).toBeUndefined();
    expect(limitReached({ ...limit, used: 1, at: 2 * DAY })).toBeUndefined();
    expect(limitReached({ ...limit, used: null, at: 2 * DAY })).toBeUndefined();
    expect(limitReached({ limit: "other", resets_at: reset, used: 0.9, at: DAY })).toBeUndefined();
    expect(limitReached({ ...limit, used: 0.5, at: -DAY })).toBeUndefined();
  });
});
