// Styles belong to a component: a class is in a CSS module, and a global sheet has only elements and tokens.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCE = join(process.cwd(), "src");
const files = readdirSync(SOURCE, { recursive: true }).map(String).sort();
const read = (file: string): string => readFileSync(join(SOURCE, file), "utf8");
const withoutComments = (css: string): string => css.replace(/\/\*[\s\S]*?\*\//g, "");

/** The class names in the selectors of a sheet, as a component names them. */
function classesOf(css: string): string[] {
  const selectors = withoutComments(css).match(/[^{}]+(?=\{)/g) ?? [];
  const found = selectors.flatMap((one) => one.match(/\.[a-z][\w-]*/gi) ?? []);
  return [...new Set(found.map((one) => one.slice(1).replace(/-(.)/g, (_, c) => c.toUpperCase())))];
}

/** Class names that a component writes as text: nobody scopes those. */
function writtenClasses(name: string): string[] {
  const file = ts.createSourceFile(name, read(name), ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isJsxAttribute(node) && /^(className|triggerClass)$/.test(node.name.getText(file))) {
      const texts = (one: ts.Node): void => {
        const compared =
          ts.isBinaryExpression(one.parent) && /^[!=]==$/.test(one.parent.operatorToken.getText());
        const literal = ts.isStringLiteralLike(one) || ts.isTemplateHead(one);
        if ((literal || ts.isTemplateMiddle(one) || ts.isTemplateTail(one)) && !compared) {
          if (/[a-z]{2}/.test(one.text)) found.push(`${name}: ${one.text}`);
        }
        ts.forEachChild(one, texts);
      };
      if (node.initializer) texts(node.initializer);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The modules of `ui/css.ts`, by name. */
function shared(): Map<string, string> {
  const imports = read("ui/css.ts").matchAll(/import (\w+) from "\.\/(.+?)";/g);
  return new Map([...imports].map(([, name = "", file = ""]) => [name, join("ui", file)]));
}

/** The classes that a component takes from modules, as `file class`. */
function usedClasses(name: string, parts: ReadonlyMap<string, string>): string[] {
  const source = read(name);
  const body = source.replace(/^import .*$/gm, "");
  const found: string[] = [];
  for (const [, local, path = ""] of source.matchAll(/import (\w+) from "(.+?\.module\.css)";/g)) {
    const file = normalize(join(dirname(name), path));
    for (const [, used] of body.matchAll(new RegExp(`(?<![.\\w])${local}\\.(\\w+)`, "g"))) {
      found.push(`${file} ${used}`);
    }
  }
  for (const [, part = "", used] of body.matchAll(/(?<![.\w])css\.(\w+)\.(\w+)/g)) {
    found.push(`${parts.get(part)} ${used}`);
  }
  return found;
}

describe("styles", () => {
  it("of a global sheet name no class", () => {
    const global = files.filter((file) => file.endsWith(".css") && !file.endsWith(".module.css"));
    expect(global).toEqual(["ui/base.css", "ui/fonts.css", "ui/tokens.css", "ui/touch.css"]);
    expect(global.flatMap((file) => classesOf(read(file)))).toEqual([]);
  });

  it("are taken from a module, and written out by no component", () => {
    const components = files.filter((file) => file.endsWith(".tsx"));
    expect(components.flatMap(writtenClasses)).toEqual([]);
  });

  it("that a component takes are in the module, and those in a module are taken", () => {
    const parts = shared();
    const sources = files.filter((file) => /\.tsx?$/.test(file) && !file.startsWith("api/"));
    const used = new Set(sources.flatMap((file) => usedClasses(file, parts)));
    const modules = files.filter((file) => file.endsWith(".module.css"));
    const present = new Set(
      modules.flatMap((file) =>
        classesOf(read(file).replace(/:global\([^)]*\)/g, "")).map((one) => `${file} ${one}`),
      ),
    );
    expect([...used].filter((one) => !present.has(one))).toEqual([]);
    expect([...present].filter((one) => !used.has(one))).toEqual([]);
  });
});
