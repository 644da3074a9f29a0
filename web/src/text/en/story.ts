/** Texts of the web app: the story of a session. */
import { duration, plural, tokens } from "../../ui/format";

export const story = {
  empty: "No messages yet. Write a prompt below.",
  label: "Conversation",
  loadingOlder: "Loading earlier messages …",
  toEnd: "Jump to latest",

  you: "you",
  queued: "queued",
  cancelled: "cancelled",
  promptPicture: "attached to the prompt",
  resultPicture: "tool result",
  thinking: "Thinking",
  thinkingNow: "Thinking …",
  copy: "Copy",
  copied: "Copied",
  copyAnswer: "Copy answer",
  copyLink: "Copy link to this message",
  showAll: "Show all",
  showLess: "Show less",
  outputOf: (command: string) => (command ? `Output of ${command}` : "Claude Code"),
  causeLabel: "Nobody prompted this turn:",
  countdown: (words: string, left: string) => `${words} in ${left}.`,
  raiseBudget: "Raise the budget …",

  done: "done",
  waitedForYou: (ms: number) => `${duration(ms)} waiting for answers`,
  tokens: (count: number) => `${tokens(count)} tokens`,
  outcomes: {
    error_during_execution: "interrupted or failed",
    error_max_turns: "turn limit reached",
    error_max_budget_usd: "budget reached",
    error_max_structured_output_retries: "no valid structured output",
  } as Record<string, string>,

  verdicts: { allow: "allowed", deny: "denied", ask: "asked about" } as Record<string, string>,
  verdictBy: (verdict: string, by: string) => `${verdict} by ${by}`,
  verdictAfter: (verdict: string, by: string, waited: string) =>
    `${verdict} by ${by} after ${waited}`,
  states: {
    running: "running",
    waiting: "waiting for you",
    interrupted: "interrupted",
    failed: "failed",
    done: "done",
  },
  inBackground: "running in the background",
  subagent: (steps: number) => `Subagent: ${plural(steps, "step")}`,
  calls: (count: number) => plural(count, "call"),
  failedCalls: (count: number) => `${count} failed`,
  todoStatus: (status: string) => status.replace("_", " "),

  outputTail: (lines: number) => `last ${plural(lines, "line")}`,
  allLines: (lines: number) => `Show all ${lines} lines`,
  longOutput: (size: string) =>
    size ? `Long output (${size}), stored in` : "Long output, stored in",

  live: {
    working: "Working",
    thinking: "Thinking",
    writing: "Writing",
    waiting: "Waiting for your answer",
    retrying: "Retrying",
    compacting: "Compacting the conversation",
    starting: "Starting",
    limited: "Waiting for the rate limit",
    interrupt: "to interrupt",
    interruptButton: "Interrupt",
    waited: (ms: number) => `waited ${duration(ms)} for answers`,
  },

  find: {
    open: "Find in this session",
    label: "Find in this session",
    placeholder: "Find",
    next: "Next match",
    previous: "Previous match",
    close: "Close find",
    count: (at: number, of: number) => (of ? `${at} of ${of}` : "no match"),
    older: (count: number) =>
      `${plural(count, "match", "matches")} in parts that are not loaded yet`,
    searching: "Searching …",
  },
};
