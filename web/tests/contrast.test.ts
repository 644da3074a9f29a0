import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { applyTheme, setTheme, theme } from "../src/ui/preferences";

const css = readFileSync("src/ui/tokens.css", "utf8");

/** The colours of a block, light and dark. */
function coloursOf(selector: string): Map<string, [string, string]> {
  const from = css.indexOf(`${selector} {`);
  expect(from, selector).toBeGreaterThanOrEqual(0);
  const block = css.slice(from, css.indexOf("}", from));
  const found = block.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g);
  return new Map(
    [...found].map(([, name, light, dark]) => [name ?? "", [light ?? "", dark ?? ""]]),
  );
}

/** The contrast of two colours, as WCAG defines it. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
    const [r = 0, g = 0, b = 0] = parts.map((c) =>
      c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const TEXTS = ["ink", "ink-2", "ink-3", "accent", "wait", "work", "good", "bad"];

describe("texts", () => {
  it.each([
    [":root", 4.5],
    [':root[data-theme="contrast"]', 7],
    [":root:not([data-theme])", 7],
  ])("can be read with the colours of %s: %d to 1 at least", (selector, least) => {
    const colours = coloursOf(selector);
    const low: string[] = [];
    for (const text of TEXTS) {
      for (const ground of ["ground", "surface"]) {
        for (const scheme of [0, 1] as const) {
          const pair = [colours.get(text)?.[scheme] ?? "", colours.get(ground)?.[scheme] ?? ""];
          const found = contrast(pair[0] ?? "", pair[1] ?? "");
          if (!(found >= least)) low.push(`${text} on ${ground}: ${found.toFixed(2)}`);
        }
      }
    }
    expect(low).toEqual([]);
  });

  it("have the same high contrast, whether it is chosen here or in the system", () => {
    expect(coloursOf(":root:not([data-theme])")).toEqual(coloursOf(':root[data-theme="contrast"]'));
  });
});

describe("the theme", () => {
  afterEach(() => localStorage.clear());
  it("is one that there is, whatever the storage says", () => {
    setTheme("contrast");
    expect(document.documentElement.dataset.theme).toBe("contrast");
    localStorage.setItem("quarterdeck.theme", "evil");
    applyTheme();
    expect(theme()).toBe("system");
    expect(document.documentElement.dataset.theme).toBeUndefined();
  });
});
