// The parts of a CLI's request that a card shows. It is untrusted and may lack any member.

import type { AskOpened } from "../api/types";
import { relativeTo } from "../session/relativePath";
import { reasonTexts } from "../state/coded";
import { isObject, type JsonObject, text } from "../state/contentBlocks";
import { lookup } from "../state/lookup";
import { text as catalogue } from "../text";

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
  return line.replace(/^#+\s*/, "").trim() || catalogue.asks.untitledPlan;
}

/** A question in one line: a call's title, a plan's title, or the question itself. */
export function askTitle(opened: AskOpened): string {
  if (opened.ask_kind === "plan") return planTitle(opened.plan ?? "");
  if (opened.ask_kind === "questions")
    return questionsOf(opened)[0]?.question || catalogue.asks.untitledQuestion;
  return opened.title || opened.tool;
}

/** The reasons of a question; paths are relative to this folder. */
export function reasonsOf(opened: AskOpened, folder = ""): string[] {
  const request = isObject(opened.request) ? opened.request : {};
  const path = relativeTo(text(request.blocked_path), folder);
  const said = reasonTexts(opened);
  // Where a rule asks, the CLI repeats the reason that the hub's hook gave it.
  if (!opened.coded?.length) said.push(text(request.decision_reason));
  if (path) said.push(catalogue.asks.path(path));
  return [...new Set(said.filter(Boolean))];
}

/** A change that the CLI suggests, by its place in the request. It is made only if it is chosen. */
export interface CliChange {
  index: number;
  words: string;
}

/** The changes that the CLI suggests, each in words that say exactly what it does. */
export function cliChangesOf(opened: AskOpened): CliChange[] {
  return suggestionsOf(opened).map((one, index) => ({ index, words: changeText(one) }));
}

/** The rules that the CLI suggests to allow, if they are not the narrowest ones. */
export function widerRulesOf(opened: AskOpened): string[] {
  const rules = suggestionsOf(opened)
    .filter((one) => isObject(one) && one.type === "addRules" && one.behavior === "allow")
    .flatMap((one) => ruleTexts(one as JsonObject));
  return [...new Set(rules)].filter((rule) => !opened.narrowest?.includes(rule));
}

function suggestionsOf(opened: AskOpened): unknown[] {
  const request = isObject(opened.request) ? opened.request : {};
  return Array.isArray(request.permission_suggestions) ? request.permission_suggestions : [];
}

const words = catalogue.asks.changes;

function changeText(given: unknown): string {
  if (!isObject(given)) return JSON.stringify(given);
  const type = text(given.type);
  const place =
    lookup(words.places, text(given.destination)) ?? words.inPlace(text(given.destination));
  if (type === "setMode") {
    const mode = text(given.mode);
    return words.mode(mode, mode === "acceptEdits", place);
  }
  if (Array.isArray(given.directories)) {
    const verb = type === "addDirectories" ? words.addFolders : words.removeFolders;
    return `${verb} ${given.directories.map(text).join(", ")} ${place}`;
  }
  const verb = lookup(words.rules, type);
  if (!verb || !Array.isArray(given.rules)) return JSON.stringify(given);
  const rules = ruleTexts(given).join(", ");
  return `${verb} ${text(given.behavior)} ${rules}, ${place}`;
}

function ruleTexts(given: JsonObject): string[] {
  const rules = Array.isArray(given.rules) ? given.rules : [];
  return rules.filter(isObject).map((rule) => {
    const content = text(rule.ruleContent);
    return content ? `${text(rule.toolName)}(${content})` : text(rule.toolName);
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
