/** Texts of the web app: cards with questions, and keys. */

/** For each group of keys its name, where they act, and the keys with what they do. */
const groups: [string, string, [string, string][]][] = [
  [
    "Everywhere",
    "outside text fields",
    [
      ["g", "go to the next open question, in this session first"],
      ["c", "go to the composer"],
      ["?", "show these keys"],
    ],
  ],
  [
    "Tool call",
    "in a focused card",
    [
      ["y", "allow once"],
      ["s", "choose what to allow for the session; s again confirms"],
      ["a", "choose what to allow always; a again confirms"],
      ["e", "edit first"],
      ["n", "deny"],
    ],
  ],
  [
    "Plan",
    "in a focused card",
    [
      ["1 1", "approve, accept edits"],
      ["2 2", "approve, ask for each call"],
      ["3 3", "approve in a new conversation"],
      ["4 4", "keep planning, with your comments"],
      ["5 5", "reject"],
    ],
  ],
  [
    "Composer",
    "while writing",
    [
      ["Enter", "send, or queue while a turn runs"],
      ["Shift Enter", "new line"],
      ["↑ ↓", "earlier prompts"],
      ["/ @", "commands and files"],
      ["Escape", "close the open menu; then interrupt the turn"],
    ],
  ],
];

export const asks = {
  keys: {
    title: "Keys",
    groups,
    single: "Use single keys",
    singleHint: "Without them only Tab, Enter, Space, Escape and the keys of the composer act.",
    undo: "Time to undo an answer by key, a lasting grant or an approved plan",
    seconds: (count: number) => `${count} s`,
    none: "none",
  },
};
