/**
 * Texts that are shown without the app: by the service worker, the browser and the page before its script.
 *
 * The build writes them into their files, so they are plain texts; `{name}` and `{limit}` are filled in.
 */

export const pwa = {
  name: "Quarterdeck",
  description: "Every agent at a glance",
  noScript: "Quarterdeck needs JavaScript. The quarterdeck command does the same in a terminal.",
  /** For each code of a push message the title of its notification. */
  titles: {
    question: "{name} waits for you",
    finished: "{name} has finished",
    failed: "{name} has failed",
    crashed: "{name} has crashed",
    budget: "{name}: budget spent",
  } as Record<string, string>,
  /** Of a push message that cannot be read. */
  unknown: "An agent is waiting for you",
  anAgent: "An agent",
  limits: {
    usd: "The limit of {limit} US dollars is reached.",
    tokens: "The limit of {limit} tokens is reached.",
  } as Record<string, string>,
  /** How a turn ended, for codes that are no words. */
  outcomes: {
    error_during_execution: "interrupted or failed",
    error_max_turns: "turn limit reached",
    error_max_budget_usd: "budget reached",
    error_max_structured_output_retries: "no valid structured output",
  } as Record<string, string>,
  allow: "Allow once",
  deny: "Deny",
  notAnswered: "Not answered",
  unreachable: "The hub cannot be reached.",
};
