// The parts of a CLI's request that a card shows. It is untrusted and may lack any member.
import type { AskOpened } from "../api/types";
import { relativeTo } from "../session/relativePath";
import { isObject, type JsonObject, text } from "../state/contentBlocks";

export interface Option {
  label: string;
  description: string;
  preview: string;
}
export interface Question {
  question: string;
  header: string;
  options: Option[];
  multiSelect: boolean;
}

/** The input of the tool call that is asked about. */
export function inputOf(opened: AskOpened): JsonObject {
  const request = isObject(opened.request) ? opened.request : {};
  return isObject(request.input) ? request.input : {};
}

/** The title of a plan: its first line. */
export function planTitle(plan: string): string {
  const line = plan.split("\n").find((one) => one.trim()) ?? "";
  return line.replace(/^#+\s*/, "").trim() || "Plan";
}

/** A question in one line: a call's title, a plan's title, or the question itself. */
export function askTitle(opened: AskOpened): string {
  if (opened.ask_kind === "plan") return planTitle(opened.plan ?? "");
  if (opened.ask_kind === "questions") return questionsOf(opened)[0]?.question || "Question";
  return opened.title || opened.tool;
}

/** The reasons of a question; paths are relative to this folder. */
export function reasonsOf(opened: AskOpened, folder = ""): string[] {
  const request = isObject(opened.request) ? opened.request : {};
  const path = relativeTo(text(request.blocked_path), folder);
  // The CLI repeats the reason that the hub's hook gave it.
  const said = [...(opened.reasons ?? []), request.decision_reason].map(text);
  if (path) said.push(`path: ${path}`);
  return [...new Set(said.filter(Boolean))];
}

/** The rules that "Allow for session" adds in the CLI, each in a line. */
export function sessionRulesOf(opened: AskOpened): string[] {
  const added = suggestionsOf(opened).map(([, words]) => words);
  return added.length ? added : [`allow every ${opened.tool} call`];
}

/** What "Always allow" adds: rules of the hub, or for edits another mode. */
export function alwaysRulesOf(opened: AskOpened): string[] {
  const added = suggestionsOf(opened);
  const rules = added.filter(([kind]) => kind === "allow").map(([, words]) => words);
  if (rules.length) return rules;
  const others = added.filter(([kind]) => kind === "other").map(([, words]) => words);
  return opened.tool !== "Bash" && others.length ? others : ["allow exactly this call"];
}

/** The CLI's suggestions, in words. The hub turns the ones that allow into its own rules. */
function suggestionsOf(opened: AskOpened): ["allow" | "other" | "none", string][] {
  const request = isObject(opened.request) ? opened.request : {};
  const given = Array.isArray(request.permission_suggestions) ? request.permission_suggestions : [];
  return given.filter(isObject).flatMap((one): ["allow" | "other" | "none", string][] => {
    const removes = /^remove/.test(text(one.type)) ? "remove: " : "";
    if (one.type === "setMode") return [["other", `mode ${text(one.mode)}`]];
    if (Array.isArray(one.directories)) {
      return one.directories.map((folder) => ["other", `${removes}folder ${text(folder)}`]);
    }
    if (!Array.isArray(one.rules)) return [["none", JSON.stringify(one)]];
    const behavior = text(one.behavior) || "allow";
    return one.rules.filter(isObject).map((rule) => {
      const content = text(rule.ruleContent);
      const words = `${removes}${behavior} ${text(rule.toolName)}${content ? `(${content})` : ""}`;
      return [behavior === "allow" && one.type === "addRules" ? "allow" : "none", words];
    });
  });
}

export function questionsOf(opened: AskOpened): Question[] {
  const given = inputOf(opened).questions;
  return (Array.isArray(given) ? given : []).filter(isObject).map((one) => ({
    question: text(one.question),
    header: text(one.header),
    multiSelect: one.multiSelect === true,
    options: (Array.isArray(one.options) ? one.options : []).filter(isObject).map((option) => ({
      label: text(option.label),
      description: text(option.description),
      preview: text(option.preview),
    })),
  }));
}
