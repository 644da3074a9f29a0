/** Texts of the web app: search. */

export const search = {
  title: "Search",
  words: "Words",
  example: 'Words, "a phrase", prefix*, -exclude',
  project: "Project",
  projectExample: "Project or folder",
  tool: "Tool",
  kind: "Kind",
  kinds: { all: "all kinds", prompt: "prompts", answer: "answers", tool: "tool calls" },
  since: "Since",
  search: "Search",
  results: "Results",
  none: "No results.",
  prompt: "Search over all sessions",
  promptHint: "Prompts, answers and tool calls of every session are found, also of archived ones.",
  more: "Load more",
};
