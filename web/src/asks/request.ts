// What a card shows of a request of the CLI, which is untrusted and may lack anything.
import type { AskOpened } from "../api/types";
import { isObject, type Obj, text } from "../state/lines";

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
export function inputOf(opened: AskOpened): Obj {
  const request = isObject(opened.request) ? opened.request : {};
  return isObject(request.input) ? request.input : {};
}

/** Why it is asked, as far as anybody said. */
export function reasonsOf(opened: AskOpened): string[] {
  const request = isObject(opened.request) ? opened.request : {};
  const ours = "reasons" in opened && Array.isArray(opened.reasons) ? opened.reasons : [];
  return [
    ...ours,
    request.decision_reason,
    request.blocked_path && `outside: ${request.blocked_path}`,
  ]
    .map(text)
    .filter(Boolean);
}

/** The rules that «always» would add, each in a line. */
export function suggestionsOf(opened: AskOpened): string[] {
  const request = isObject(opened.request) ? opened.request : {};
  const given = Array.isArray(request.permission_suggestions) ? request.permission_suggestions : [];
  return given.filter(isObject).flatMap((one) => {
    const where = text(one.destination);
    const behind = where ? ` (${where})` : "";
    if (one.type === "setMode") return [`mode ${text(one.mode)}${behind}`];
    if (Array.isArray(one.directories)) {
      return one.directories.map((folder) => `folder ${text(folder)}${behind}`);
    }
    if (!Array.isArray(one.rules)) return [];
    return one.rules.filter(isObject).map((rule) => {
      const content = text(rule.ruleContent);
      return `${text(one.behavior) || "allow"} ${text(rule.toolName)}${content ? `(${content})` : ""}${behind}`;
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
