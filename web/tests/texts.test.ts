// Every text that a person reads is in the catalogue `src/text`: a component holds none of its own.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCE = join(process.cwd(), "src");
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

  it("are in the catalogue, and in no component", () => {
    const files = components();
    expect(files.length).toBeGreaterThan(40);
    const own = files.flatMap((file) => ownTexts(file, readFileSync(join(SOURCE, file), "utf8")));
    expect(own).toEqual([]);
  });
});
