// Syntax highlighting, loaded with the first code block. Each language is a separate chunk.
import {
  createHighlighterCore,
  type GrammarState,
  type HighlighterCore,
  type ThemedToken,
} from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import { lookup } from "../state/lookup";
import type { Piece } from "./highlightCache";

const LANGUAGES = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  dockerfile: () => import("shiki/langs/dockerfile.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
} as const;
type Language = keyof typeof LANGUAGES;

const ALIASES: Record<string, Language> = {
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  h: "c",
  cc: "cpp",
  js: "javascript",
  jsx: "tsx",
  mjs: "javascript",
  md: "markdown",
  py: "python",
  rb: "ruby",
  rs: "rust",
  ts: "typescript",
  yml: "yaml",
  htm: "html",
};
const LONGEST = 40_000;
/** So many lines are highlighted without a pause: a few milliseconds. */
const AT_ONCE = 40;

let made: Promise<HighlighterCore> | undefined;

function highlighter(): Promise<HighlighterCore> {
  made ??= createHighlighterCore({
    // With high contrast: changed lines have a tinted ground.
    themes: [
      import("shiki/themes/github-light-high-contrast.mjs"),
      import("shiki/themes/github-dark-high-contrast.mjs"),
    ],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  return made;
}

/** The language of a name or of a file's extension; undefined if it is not supported. */
export function languageOf(name: string | undefined): Language | undefined {
  if (!name) return undefined;
  const ending = name.split(".").at(-1)?.toLowerCase() ?? "";
  if (Object.hasOwn(LANGUAGES, ending)) return ending as Language;
  return lookup(ALIASES, ending);
}

/** In characters: a longer line has no colours. */
const LONGEST_LINE = 2000;

/** The tokens of each line; empty for a language that is not supported. */
export async function highlight(
  code: string,
  name: string,
  stop: AbortSignal,
  longest = LONGEST,
): Promise<Piece[][]> {
  const language = languageOf(name);
  if (!language || code.length > longest) return [];
  const core = await highlighter();
  await core.loadLanguage(LANGUAGES[language]());
  const lines = code.split("\n");
  const found: Piece[][] = [];
  let grammarState: GrammarState | undefined;
  for (let at = 0; at < lines.length && !stop.aborted; at += AT_ONCE) {
    if (at) await pause();
    const part = core.codeToTokens(lines.slice(at, at + AT_ONCE).join("\n"), {
      lang: language,
      themes: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
      defaultColor: false,
      // After its limit it would leave the rest of a line in wrong colours: the first line of a
      // language takes long on a slow machine. Lines that could take really long have none.
      tokenizeTimeLimit: 0,
      tokenizeMaxLineLength: LONGEST_LINE,
      ...(grammarState ? { grammarState } : {}),
    });
    grammarState = part.grammarState;
    found.push(...part.tokens.map((line) => line.map(pieceOf)));
  }
  // It drops some line ends. The text on screen must be the code itself: then it has no colours.
  const same = found.map((line) => line.map((one) => one.content).join("")).join("\n") === code;
  return same ? found : [];
}

function pieceOf({ content, htmlStyle }: ThemedToken): Piece {
  return { content, style: typeof htmlStyle === "object" ? htmlStyle : {} };
}

/** Let other tasks of the page run. */
function pause(): Promise<void> {
  return new Promise((done) => setTimeout(done));
}
