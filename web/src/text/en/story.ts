/** Texts of the web app: the story of a session. */
import { plural } from "./numbers";
import { pwa } from "./pwa";

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
  pictureMissing: "This picture cannot be loaded.",
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
  causes: {
    wakeUps: {
      loop_wakeup: "A wake-up of the agent's loop.",
      schedule_wakeup: "A wake-up that the agent scheduled.",
    },
    channel: (name: string) => `A message from the channel ${name || "without a name"}.`,
    notifications: {
      "scheduled-trigger": "A scheduled time",
      "peer-send-message": "A message of another session",
      "session-inbox": "A message for this session",
      "projects-relay": "A message for this project",
    },
    task: "A background task",
    origins: {
      coordinator: "The coordinator of the agent's team.",
      "auto-continuation": "Claude Code continued by itself.",
      observer: "An observer of the session.",
    },
  },
  countdown: (words: string, left: string) => `${words} in ${left}.`,
  raiseBudget: "Raise the budget …",

  done: "done",
  waitedForYou: (time: string) => `${time} waiting for answers`,
  tokens: (count: string) => `${count} tokens`,
  outcomes: pwa.outcomes,

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
  todoNumber: (id: string) => `to-do ${id}`,
  todoStatus: (status: string) => status.replace("_", " "),

  outputTail: (lines: number) => `last ${plural(lines, "line")}`,
  allLines: (lines: number) => `Show all ${lines} lines`,
  wholeOutput: "Show whole output",
  wholeOutputLabel: "Whole output",
  moreOutput: (shown: number, size: number) =>
    `Show more (${Math.round(shown / 1024)} of ${Math.round(size / 1024)} KB)`,
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
    waited: (time: string) => `waited ${time} for answers`,
  },

  /** What happened beside the conversation. */
  notes: {
    unreadable: (why: string) => `Unreadable line from the CLI: ${why}`,
    rateLimit: "The account reached its rate limit.",
    rateLimitResets: "It resets",
    budget: (scope: string, spent: string, limit: string) =>
      `Budget of the ${scope} reached: ${spent} of ${limit}.`,
    unknownProcess: "an unknown process",
    process: (pid: number) => `process ${pid}`,
    namedProcess: (name: string, process: string) => `${name}, ${process}`,
    peer: (who: string, said: string) => `Another Claude session (${who}) prompted: ${said}`,
    responds: "The agent responds again.",
    started: (version: string) => (version ? `Claude Code ${version} started` : "agent started"),
    ended: (why: string) => `The agent ended. ${why}`,
    linkLost: (why: string) => `${why} The agent may still be working.`,
    linkFound: "Connection restored.",
    linkFoundWithLoss: "Connection restored; some output was lost.",
    worktree: (branch: string, action: string, by: string) => `${branch}: ${action} by ${by}.`,
    doneBy: (what: string, by: string) => `${what} (${by})`,
    renamed: (name: string, by: string) => `renamed to “${name}” by ${by}`,
    newConversation: "New conversation",
    retry: (why: string, attempt: number | string, most: number | string) =>
      `The model's API failed (${why}), attempt ${attempt} of ${most}.`,
    retrying: "Retrying",
    unknownCount: "?",
    compacted: "conversation compacted",
    compactedTo: (before: number, after: number) =>
      `conversation compacted: ${before} tokens reduced to ${after}`,
    taskEnded: "ended",
    task: (title: string, status: string) => `Background task “${title}”: ${status}`,
    hookFailed: (hook: string, why: string) => `The hook ${hook} failed: ${why}`,
    writesLost: "The CLI could not write all of the session to its disk.",
  },
  /** Tools whose own name says little to a person. */
  tools: {
    TodoWrite: "To do",
    TaskCreate: "New to-do",
    TaskUpdate: "To do",
    TaskGet: "To do",
    TaskList: "To-do list",
    WebSearch: "Web search",
    WebFetch: "Web page",
    ExitPlanMode: "Plan",
  } as Record<string, string>,

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
