import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it, vi } from "vitest";
import { finish, grow, NO_SESSIONS, type Parsed, parse, sliced } from "../src/markdown/blocks";
import { fileAddress, localFile } from "../src/markdown/localLink";
import { Markdown } from "../src/markdown/Markdown";
import { isTame, LONGEST, piecesOf, slicesOf } from "../src/markdown/slices";

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

/** Texts for which the parser takes many seconds, by their length. */
const HOSTILE: Record<string, (length: number) => string> = {
  "marks that never close": (length) => "*a_ ".repeat(length / 4),
  brackets: (length) => "[".repeat(length / 2) + "]".repeat(length / 2),
  "pictures in links": (length) => "[![](".repeat(length / 5),
  "marks and brackets": (length) => "*[".repeat(length / 2),
  "runs of backticks": (length) =>
    Array.from({ length: Math.sqrt(length * 2) }, (_, index) => "`".repeat(index + 1)).join(" "),
  "lists in lists": (length) => `${"- ".repeat(length / 2)}a`,
  "numbers in numbers": (length) => `${"1. ".repeat(length / 3)}a`,
  "lists by indentation": (length) =>
    Array.from({ length: Math.sqrt(length) }, (_, index) => `${" ".repeat(2 * index)}- a`).join(
      "\n",
    ),
  "quotes in quotes": (length) => "> ".repeat(length / 2),
  headings: (length) => "a\n=\n".repeat(length / 4),
};

describe("a text that would take very long to parse", () => {
  it.each(Object.entries(HOSTILE))("is shown as it is: %s", async (_, make) => {
    const text = make(80_000);
    expect(isTame(text)).toBe(false);
    const { blocks } = parse(text);
    expect(blocks).toHaveLength(1);
    expect(grow(NO_SESSIONS, text).blocks).toHaveLength(1);
    const place = await drawn(text);
    expect(place.textContent).toBe(text);
  });

  it.each(Object.entries(HOSTILE))("does not keep the rest from being parsed: %s", (_, make) => {
    const { blocks } = parse(`# Before\n\n${make(80_000)}\n\nAfter **it**`);
    expect(blocks[0]?.node.type).toBe("heading");
    expect(JSON.stringify(blocks.at(-1)?.node)).toContain('"strong"');
  });

  it("shows long code as code", () => {
    const code = "x = [1]\n".repeat(LONGEST / 4);
    for (const text of [`\`\`\`py\n${code}\`\`\`\n`, `\`\`\`py\n${code}`]) {
      const [block] = parse(text).blocks;
      expect(block?.node).toMatchObject({ type: "code", lang: "py", value: code.trimEnd() });
    }
  });
});

describe("a long text", () => {
  const long = Array.from({ length: 40 }, (_, index) => `${SAMPLE}\nPart ${index}`).join("\n\n");

  it("means the same in slices as at once", () => {
    for (const text of [SAMPLE, long.slice(0, LONGEST - 1)]) {
      expect(slicesOf(text).join("")).toBe(text);
      const together = formOf(parse(text));
      const apart = slicesOf(text).flatMap((slice) => formOf(parse(slice)) as { node: unknown }[]);
      expect(apart.map((block) => block.node)).toEqual(
        (together as { node: unknown }[]).map((block) => block.node),
      );
    }
  });

  it.each([
    "- a\n\nnot in the list\n\n- b\n\n  still b\n\nend",
    "```\na\n\nb\n```\n\nc",
    "~~~\n```\n\nx\n\n~~~\n\nc",
    "<!-- a\n\nb -->\n\nc",
    "> a\n\n> b\n\nc",
    "1. a\n\n   b\n\n2. c\n\nd",
    "    code\n\n    more\n\nx",
    "a\n\n| b | c |\n|---|---|\n| d | e |\n\nf",
    "a\r\n\r\nb\r\n",
    "",
    "\n\n\na",
  ])("is taken apart only where nothing is torn: %j", (text) => {
    const nodes = (parsed: Parsed) =>
      parsed.blocks.map((block) => ({ ...block.node, position: 0 }));
    const clean = (value: unknown) =>
      JSON.stringify(value, (name, inner) => (name === "position" ? undefined : inner));
    const apart = slicesOf(text).flatMap((slice) => nodes(parse(slice)));
    expect(slicesOf(text).join("")).toBe(text);
    expect(clean(apart)).toBe(clean(nodes(parse(text))));
  });

  it("is parsed a slice at a time, and is never without its rest", async () => {
    const slicing = sliced(long);
    expect(slicing.done).toBe(false);
    slicing.more(0);
    expect(slicing.done).toBe(false);
    expect(slicing.blocks().at(-1)?.node.data).toEqual({ asItIs: true });
    for (let count = 0; !slicing.done; count++) {
      expect(count).toBeLessThan(1000);
      slicing.more(0);
    }
    expect(formOf({ text: long, live: false, blocks: slicing.blocks() })).toEqual(
      formOf(parse(long)),
    );
  });

  it("is drawn as a whole in the end", async () => {
    const place = document.createElement("div");
    await act(async () => createRoot(place).render(<Markdown text={long} />));
    await vi.waitFor(
      async () => {
        await act(async () => new Promise((resolve) => setTimeout(resolve)));
        expect(place.querySelectorAll("h1")).toHaveLength(40);
      },
      { timeout: 50_000 },
    );
    expect(place.textContent).toContain("Part 39");
  });
});

describe("maths", () => {
  const formulas = (text: string): unknown[] => {
    const found: unknown[] = [];
    const look = (node: {
      type: string;
      value?: string;
      display?: boolean;
      children?: never[];
    }) => {
      if (node.type === "inlineMath") found.push([node.value, node.display]);
      for (const child of node.children ?? []) look(child);
    };
    for (const block of parse(text).blocks) look(block.node as never);
    return found;
  };

  it("is found between its marks", () => {
    expect(formulas("so $a_1*b_1 = c*d$ holds")).toEqual([["a_1*b_1 = c*d", false]]);
    expect(formulas("$$\n\\int_0^1 x\\,dx\n$$")).toEqual([["\\int_0^1 x\\,dx", true]]);
    expect(formulas("\\(x^2\\) and \\[ y = 1 \\]")).toEqual([
      ["x^2", false],
      ["y = 1", true],
    ]);
    expect(formulas("**$x$**")).toEqual([["x", false]]);
  });

  it("is neither money nor a shell's variable", () => {
    for (const text of [
      "it costs $5, or $10 a day",
      "between $5-$10",
      "$HOME/bin:$PATH",
      "a $ b $ c",
      "`$x^2$`",
      "US$x_1$y",
      "$ x^2 $",
      "\\[not closed",
      "$x^2",
    ]) {
      expect(formulas(text), text).toEqual([]);
    }
  });

  it("takes no time in a text that is nothing but marks", () => {
    const start = performance.now();
    for (const mark of ["$", "$x", "\\(", "$$ ", "$a^", "\\[\\]"]) parse(mark.repeat(5000));
    expect(performance.now() - start).toBeLessThan(5000);
  });

  it("is drawn as MathML of known elements, and its source is kept where a person decides", async () => {
    const place = document.createElement("div");
    const root = createRoot(place);
    const formula = "$\\frac{a}{b} + \\href{javascript:alert(1)}{x}$ and $x^2$";
    await act(async () => root.render(<Markdown text={formula} />));
    await vi.waitFor(() => expect(place.querySelector("math msup")).not.toBeNull());
    expect(place.querySelector("math")?.outerHTML).not.toContain("javascript:alert");
    expect(place.querySelector("a, annotation, style")).toBeNull();
    await act(async () => root.render(<Markdown text="$x^2$" careful />));
    expect(place.textContent).toBe("$x^2$");
    await act(async () => root.unmount());
  });
});

describe("a link to a file", () => {
  it("opens the file of the session", () => {
    expect(localFile("src/app.py")).toEqual({ path: "src/app.py" });
    expect(localFile("src/app.py:12")).toEqual({ path: "src/app.py", line: 12 });
    expect(localFile("src/app.py:12:5")).toEqual({ path: "src/app.py", line: 12 });
    expect(localFile("./a%20b.md#L7-L9")).toEqual({ path: "./a b.md", line: 7 });
    expect(localFile("file:///srv/shop/a.py")).toEqual({ path: "/srv/shop/a.py" });
    expect(localFile("app.py:3")).toEqual({ path: "app.py", line: 3 });
    expect(fileAddress("s 1", "/srv/shop", { path: "/srv/shop/a&b.py", line: 3 })).toBe(
      "/changes/s%201?part=files&file=a%26b.py&line=3",
    );
    expect(fileAddress("s", "/srv/shop", { path: "./a.py" })).toBe(
      "/changes/s?part=files&file=a.py",
    );
  });

  it("is no address of elsewhere", () => {
    for (const to of ["javascript:alert(1)", "data:text/html,x", "//evil.example/x", "#part", ""]) {
      expect(localFile(to), to).toBeUndefined();
    }
  });
});

it("a text that is not parsed has pieces that stay as it grows", () => {
  const text = "some words of a paragraph that never ends ".repeat(400);
  expect(piecesOf(text).join("")).toBe(text);
  expect(piecesOf(text).length).toBeGreaterThan(4);
  expect(piecesOf(`${text}more`).slice(0, -1)).toEqual(piecesOf(text).slice(0, -1));
  expect(piecesOf("x".repeat(10_000)).join("")).toBe("x".repeat(10_000));
  expect(piecesOf("short")).toEqual(["short"]);
});
