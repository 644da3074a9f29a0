/** Texts of the web app: states of sessions and sandboxes, and errors of requests. */

const count = (number: number, one: string): string =>
  number === 1 ? `1 ${one}` : `${number} ${one}s`;

export const states = {
  sessions: {
    waiting: "waiting for you",
    disconnected: "disconnected",
    retrying: "retrying",
    rate_limited: "rate limited",
    working: "working",
    compacting: "compacting",
    starting: "starting",
    idle: "idle",
    ended: "ended",
  },
  budgetSpent: "budget spent",
  notStarted: "did not start",
  crashed: "crashed",
  /** Of a session that has ended: how its last turn did. */
  endedAfter: (how: string) => `ended: ${how}`,
  interrupted: "interrupted",
  failed: "failed",
  billing: "failed: billing",
  onHold: "failed: account on hold",
  overloaded: "failed: overloaded",
  needsLogin: "needs login",
  loginHint: (where: string) => `Run claude ${where}, and type /login.`,
  onMachine: (machine: string) => `on ${machine}`,
  onHub: "on the hub's machine",
  inBackground: (tasks: number) => `${count(tasks, "task")} in background`,
  done: "done",
  limitReached: "limit reached",
  limitUntil: (when: string) => `limit until ${when}`,
  sandbox: {
    none: "No sandbox",
    mode: (mode: string) => `Sandbox: ${mode}`,
    modes: { protect: "protect where possible", strict: "strict", off: "off" },
    reasons: {
      chosen: "It was turned off.",
      not_asked: "The hub did not ask for one.",
      not_available: "The machine cannot make one.",
      old_runner: "The runner of the machine is too old: update Quarterdeck there.",
      not_recorded: "It is not recorded whether there was one.",
    },
    allHosts: "all hosts",
    modelOnly: "the model's host only",
    modelAnd: (hosts: string) => `the model's host and ${hosts}`,
    made: (kind: string, hosts: string) => `Made by ${kind}. Network: ${hosts}.`,
  },
  replaces: {
    why: {
      binary: "it is not a text",
      too_large: "it is too large",
      link: "it is a link, which is not followed",
      other: "it is no readable file",
      outside: "it is outside of the session's folder",
    },
    unknown: (error: string) =>
      `This replaces the whole file, if there is one. It cannot be shown: ${error}`,
    reading: "This replaces the whole file, if there is one. Reading it …",
    notRead: "This replaces the whole file, if there is one.",
    creates: "This creates a new file.",
    hidden: (why: string) =>
      `This replaces the whole file. What is in it now cannot be shown: ${why}.`,
    same: "This leaves the file as it is.",
    differs: (lines: number) =>
      `This replaces the whole file of ${count(lines, "line")}; the lines that differ are marked.`,
    /** Of an edit of a part of the file. */
    edits: {
      reading: "Reading the file …",
      missing: "There is no such file.",
      unknown: (error: string) => `The file cannot be shown: ${error}`,
    },
  },
  errors: {
    unreachable: "The hub cannot be reached.",
    unreadable: (status: number) => `The hub answered ${status}.`,
    tooLarge: (limit: string) => `Too large: the hub takes up to ${limit}.`,
    withdrawn: "The command was withdrawn.",
    inPage: (error: string) => `Error in this page: ${error}`,
  },
  push: {
    needsHttps: "Web Push needs https, or a hub on localhost.",
    notSupported:
      "This browser does not support Web Push. On an iPhone, add Quarterdeck to the home screen first.",
    blocked: "The browser blocks notifications from this site.",
    serviceAway: "The push service of this browser cannot be reached.",
  },
};
