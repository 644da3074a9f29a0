import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it } from "vitest";
import { finish, grow, NO_SESSIONS, type Parsed, parse } from "../src/markdown/blocks";
import { Markdown } from "../src/markdown/Markdown";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const SAMPLE = `# What I found

A *short* list, and \`code\` with **bold** in [a link](https://one.example/a):

- one
- two

  still two
- three
  1. first
  2. second

Heading below
---

| File | Lines |
|---|---:|
| a.py | 12 |

> quoted
> twice

- [x] done
- [ ] to do

\`\`\`\`python
print("hello")

\`\`\` not the end
\`\`\`\`

~~~
tilde
~~~

the end ~~gone~~ 20~25 &amp; so on
`;

function grown(text: string, step: number): Parsed {
  let parsed = NO_SESSIONS;
  for (let end = 0; end < text.length; end += step) parsed = grow(parsed, text.slice(0, end));
  return parsed;
}

/** Without places in the text, which a part of it counts from its own beginning. */
const formOf = (parsed: Parsed): unknown =>
  JSON.parse(
    JSON.stringify(parsed.blocks, (name, value) => (name === "position" ? undefined : value)),
  );

async function drawn(text: string, live = false): Promise<HTMLElement> {
  const place = document.createElement("div");
  await act(async () => createRoot(place).render(<Markdown text={text} live={live} />));
  return place;
}

describe("text that grows", () => {
  it.each([1, 3, 7, 50])(
    "comes to the same as one that was complete, %i letters at a time",
    (step) => {
      expect(formOf(finish(grown(SAMPLE, step), SAMPLE))).toEqual(formOf(parse(SAMPLE)));
    },
  );

  it("leaves the blocks before the last as they are", () => {
    const before = grown(SAMPLE, 5);
    const after = grow(before, `${SAMPLE}more`);
    expect(before.blocks.length).toBeGreaterThan(8);
    for (const [index, block] of before.blocks.slice(0, -1).entries()) {
      expect(after.blocks[index]).toBe(block);
    }
    expect(grow(after, `${SAMPLE}more`)).toBe(after);
  });

  it("shows what is begun as if it were closed", async () => {
    expect((await drawn("so **bo", true)).querySelector("strong")?.textContent).toBe("bo");
    expect((await drawn("see [the page](https://one.exa", true)).textContent).toBe("see the page");
    const code = await drawn("look:\n\n```python\nprint(1", true);
    expect(code.querySelector("pre")?.textContent).toBe("print(1");
  });

  it("is begun anew when it is another", () => {
    const other = "# Another\n\ntext";
    expect(formOf(finish(grow(grown(SAMPLE, 9), other), other))).toEqual(formOf(parse(other)));
  });

  it("takes names of links from wherever they are given", async () => {
    const text = "see [the page][p]\n\n- and [this][p]\n\n[p]: https://one.example/a";
    const place = document.createElement("div");
    const root = createRoot(place);
    await act(async () => root.render(<Markdown text={text} live />));
    await act(async () => root.render(<Markdown text={text} />));
    const links = [...place.querySelectorAll("a")].map((one) => one.getAttribute("href"));
    expect(links).toEqual(["https://one.example/a", "https://one.example/a"]);
    const hostile = await drawn("[x][p]\n\n[p]: javascript:alert(1)");
    expect(hostile.querySelector("a")).toBeNull();
  });
});

describe("a link whose text names another address", () => {
  it.each([
    ["[https://bank.example/login](https://evil.example/x)", "evil.example"],
    ["[bank.com](https://evil.example)", "evil.example"],
    ["[https://bank.com@evil.example](https://other.example)", "other.example"],
    ["![see bank.com](https://evil.example/p.png)", "evil.example"],
  ])("says where it leads: %s", async (text, host) => {
    expect((await drawn(text)).textContent).toContain(`(leads to ${host})`);
  });

  it.each([
    "[bank.com](https://bank.com/login)",
    "[the page](https://one.example)",
    "[app.py](https://one.example/app.py)",
    "<https://one.example/a>",
  ])("is left alone where it leads there: %s", async (text) => {
    expect((await drawn(text)).textContent).not.toContain("leads to");
  });
});

describe("text that is meant to break the page", () => {
  it.each([
    ["quotes in quotes", ">".repeat(3000)],
    ["lists in lists", Array.from({ length: 25 }, (_, at) => `${"  ".repeat(at)}- x`).join("\n")],
    ["brackets", "[".repeat(3000)],
    ["stars", "*a ".repeat(2000)],
    ["fences", "```\n".repeat(500)],
  ])("is drawn all the same: %s", async (_, text) => {
    for (const live of [true, false]) {
      const place = await drawn(`${text}\n\nthe end`, live);
      let depth = 0;
      for (let at = place.querySelector("*"); at; at = at.lastElementChild) depth++;
      expect(depth).toBeLessThan(60);
    }
  });
});
