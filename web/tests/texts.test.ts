// Every text that a person reads is in the catalogue `src/text`: a component holds none of its own, and
// neither does a file that is served as it is.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCE = join(process.cwd(), "src");
const PUBLIC = join(process.cwd(), "public");
/** Attributes whose value a person reads or hears. */
const SPOKEN = new Set([
  "title",
  "aria-label",
  "placeholder",
  "alt",
  "label",
  "what",
  "hint",
  "verb",
]);

function components(): string[] {
  return readdirSync(SOURCE, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".tsx"))
    .sort();
}

const hasWords = (value: string): boolean => /\p{L}{2}/u.test(value);

/** The texts in a component's own source, each with its line. */
function ownTexts(name: string, source: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const note = (node: ts.Node, value: string): void => {
    if (!hasWords(value)) return;
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    found.push(`${name}:${line + 1}: ${value.trim().replace(/\s+/g, " ")}`);
  };
  /** What an expression shows: both sides of a choice, and the fixed parts of a template. */
  const shown = (node: ts.Expression): void => {
    if (ts.isStringLiteralLike(node)) note(node, node.text);
    else if (ts.isTemplateExpression(node)) {
      for (const part of [node.head, ...node.templateSpans.map((span) => span.literal)])
        note(part, part.text);
    } else if (ts.isConditionalExpression(node)) {
      shown(node.whenTrue);
      shown(node.whenFalse);
    } else if (ts.isParenthesizedExpression(node)) shown(node.expression);
    else if (ts.isBinaryExpression(node)) {
      if (node.operatorToken.kind !== ts.SyntaxKind.AmpersandAmpersandToken) shown(node.left);
      if (!/^(===|!==|[<>]=?)$/.test(node.operatorToken.getText(file))) shown(node.right);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) note(node, node.text);
    if (ts.isJsxExpression(node) && node.expression && !ts.isJsxAttribute(node.parent)) {
      shown(node.expression);
    }
    if (ts.isJsxAttribute(node) && SPOKEN.has(node.name.getText(file)) && node.initializer) {
      const value = node.initializer;
      if (ts.isStringLiteral(value)) note(value, value.text);
      else if (ts.isJsxExpression(value) && value.expression) shown(value.expression);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Words in code that nobody reads as text: names of others' tools, keys and headers, and data. */
const NAMES = new Set([
  ..."Bash Edit MultiEdit NotebookEdit Read TaskGet TaskUpdate TodoWrite WebSearch Write".split(
    " ",
  ),
  ..."ArrowDown ArrowUp Dead Enter Escape Process Tab Unidentified".split(" "),
  ..."Content-Type DecompressionStream PushManager Compacted".split(" "),
  "Bearer ", // a header
  "No response requested.", // what the CLI writes
  "diff --git ", // what git writes
  "git push --force", // examples for a policy
  "npm test",
  "noopener noreferrer nofollow",
  "Inter Variable", // names of fonts
  "JetBrains Mono Variable",
  "block ", // keys of data
  "draft ",
  "pin ",
  "setting ",
]);

const READS_LIKE_TEXT =
  /\p{L}{2,}[,:;.]? \p{L}|^\p{Lu}\p{Ll}+|^[^.]*\p{L}{2,}[.…!?]$|^ \p{L}{2,}|\p{L}{2,} $/u;
/** Selectors, media queries, parts of addresses and lists of the names of elements. */
const CODE = /^(math|display) |^\(.*\)$|^(input|pre|script), |^www\.$|^\/\w+\?$/;

/** Texts anywhere in a module's own source, also in data and in what functions return. */
function textsInCode(name: string, source: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isLiteralTypeNode(node)) return;
    if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddle(node) ||
      ts.isTemplateTail(node)
    ) {
      const known = NAMES.has(node.text) || CODE.test(node.text);
      if (!known && READS_LIKE_TEXT.test(node.text)) {
        const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
        found.push(`${name}:${line + 1}: ${node.text}`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const scripts = (folder: string): string[] =>
  readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => file.endsWith(".js"));

/** The texts in a page, but for what the build fills in. */
function textsInPage(source: string): string[] {
  const bare = source.replace(/<(script|style)\b.*?<\/\1>|<!--.*?-->/gs, "");
  const found = [...bare.matchAll(/>([^<]+)<|(?:title|alt|aria-label)="([^"]*)"/g)];
  return found
    .map(([, shown = "", spoken = ""]) => (shown || spoken).trim())
    .filter((one) => hasWords(one) && !/^[A-Z_]+$/.test(one));
}

describe("texts", () => {
  it("are found wherever a component can hold one", () => {
    const source = `const A = () => <p title="One two">Three {four ? "five" : \`six \${n} seven\`}
      {n > 0 && "eight"} <b className="nine" aria-label={ten ?? "eleven"}>· {"…"}</b></p>;`;
    expect(ownTexts("a.tsx", source).map((one) => one.replace(/^.*?: /, ""))).toEqual([
      "One two",
      "Three",
      "five",
      "six",
      "seven",
      "eight",
      "eleven",
    ]);
  });

  it("are found in any module", () => {
    const source = `import a from "One two"; const b = { c: "Three", d: "four" as "Four five" };
      function e(n) { return n ? \`six \${n} min\` : "seven eight"; } throw new Error("Nine.");`;
    expect(textsInCode("a.ts", source).map((one) => one.replace(/^.*?: /, ""))).toEqual([
      "Three",
      "six ",
      " min",
      "seven eight",
      "Nine.",
    ]);
  });

  it("are in the catalogue, and in no other module", () => {
    const files = readdirSync(SOURCE, { recursive: true })
      .map(String)
      .filter((file) => /\.tsx?$/.test(file) && !/^(text\/|api\/schema)/.test(file))
      .sort();
    expect(files.length).toBeGreaterThan(150);
    const own = files.flatMap((file) =>
      textsInCode(file, readFileSync(join(SOURCE, file), "utf8")),
    );
    expect(own).toEqual([]);
  });

  it("are in the catalogue, and in no script or page that is served as it is", () => {
    const page = `<!doctype html><title>One two</title><p title="Three four">five</p><script>6</script>`;
    expect(textsInPage(page)).toEqual(["One two", "Three four", "five"]);
    const pages = readdirSync(PUBLIC, { recursive: true }).map((name) =>
      join(PUBLIC, String(name)),
    );
    const files = [...pages, join(process.cwd(), "index.html"), ...scripts(SOURCE)];
    expect(files.filter((file) => /\.(js|html)$/.test(file)).length).toBeGreaterThan(4);
    const own = files.flatMap((file) => {
      if (file.endsWith(".js")) return textsInCode(file, readFileSync(file, "utf8"));
      if (/\.(html|json|webmanifest)$/.test(file)) return textsInPage(readFileSync(file, "utf8"));
      return [];
    });
    expect(own).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(SOURCE, "pwa/manifest.json"), "utf8"));
    expect([manifest.name, manifest.short_name, manifest.description]).toEqual(["", "", ""]);
  });

  it("of the catalogue take their numbers' and dates' form from it or from Intl", () => {
    const files = readdirSync(SOURCE, { recursive: true })
      .map(String)
      .filter((file) => /\.tsx?$/.test(file) && !file.startsWith("text/"));
    const by = (pattern: RegExp): string[] =>
      files.filter((file) => pattern.test(readFileSync(join(SOURCE, file), "utf8")));
    // A plural form is grammar: only a language's own file knows it.
    expect(by(/\bplural\(|=== 1 \? ["`](?!\/)|\? "" : "s"/)).toEqual([]);
    expect(by(/toLocale(Date|Time)?String|getMonth\(|getFullYear\(/)).toEqual([]);
    expect(by(/Intl\.DateTimeFormat/)).toEqual(["ui/format.ts"]);
  });

  it("are in the catalogue, and in no component", () => {
    const files = components();
    expect(files.length).toBeGreaterThan(40);
    const own = files.flatMap((file) => ownTexts(file, readFileSync(join(SOURCE, file), "utf8")));
    expect(own).toEqual([]);
  });
});
