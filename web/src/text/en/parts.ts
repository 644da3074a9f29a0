/** Texts of the web app: small parts of a session that several pages use. */

import { plural as count } from "./numbers";

export const parts = {
  plainCode: "text",
  showMoreLines: (lines: number) => `Show more: ${count(lines, "line")} left`,
  atLine: (line: number) => `line ${line}`,
  unchangedLines: (lines: number) => count(lines, "unchanged line"),
  emptyLines: (lines: number) => `· ${count(lines, "empty line")} ·`,
  blanks: (blanks: number) => `· ${count(blanks, "blank")} ·`,
  entry: "entry",
  event: "event",
  conversation: "conversation",
  composer: "composer",
  panel: "panel",
  escape: "Esc",
  pair: (code: string) => `/pair ${code}`,
  refusal: {
    verbs: { write: "to write", read: "to read", connect: "to connect to" } as Record<
      string,
      string
    >,
    refused: (verb: string) => `The sandbox refused ${verb}`,
    allowed: "Allowed from the next start of the agent: stop and resume the session.",
    allow: "Allow next time",
  },
  stop: {
    title: "Stop the agent?",
    verb: "Stop agent",
    keep: "Keep it running",
    means:
      "This ends the agent's process. The conversation is kept, and you can resume it. To end only the running turn, use Interrupt.",
    turn: "The running turn would end.",
    calls: (calls: number) => `${count(calls, "call")} would end; the last is`,
    call: "This call would end:",
    tasks: (tasks: number) => `${count(tasks, "background task")} would be ended.`,
    asks: (asks: number) => `${count(asks, "open question")} would be left.`,
    queued: (prompts: number) =>
      `${count(prompts, "queued prompt")} ${prompts === 1 ? "waits" : "wait"} until you resume.`,
  },
};
