/** Texts of the web app: going back to a prompt, forks, checkpoints, comparing forks. */
import { plural } from "./numbers";

export const rewind = {
  actions: "What to do with this prompt",
  edit: "Edit and send again …",
  editHint: "in a fork, or here after going back",
  fork: "Fork here",
  forkHint: "a new session that has not seen this prompt",
  files: "Rewind files …",
  filesHint: "to before this prompt",
  conversation: "Rewind conversation …",
  conversationHint: "to before this prompt",
  both: "Rewind both …",
  copy: "Copy prompt",
  copyLink: "Copy link to this prompt",
  notHere: (version: string | null) =>
    version
      ? `Claude Code ${version} cannot; 2.1.200 and later can`
      : "needs Claude Code 2.1.200 or later",
  notRunning: "The agent must run for this: resume the session first.",
  titles: {
    files: "Rewind the files?",
    conversation: "Rewind the conversation?",
    both: "Rewind files and conversation?",
  },
  looking: "Looking at what would change …",
  wouldChange: (count: number, insertions: number, deletions: number) =>
    `${plural(count, "file")} will be put back (+${insertions} −${deletions}):`,
  nothingChanges: "No file is different from then: the files stay as they are.",
  filesCannot: (why: string) => `The files cannot go back: ${why}`,
  conversationWill: "The agent forgets this prompt and everything after it. The story stays here.",
  conversationCannot: (why: string) => `The conversation cannot go back: ${why}`,
  shellWarning:
    "The CLI keeps checkpoints of files that its own tools edit. What shell commands did to other files stays.",
  go: "Rewind",
  done: "Done. The story says what was put back.",

  editTitle: "Edit and send again",
  editField: "Prompt",
  where: "Where it is sent",
  inFork: "In a fork",
  inForkHint: "this session stays as it is",
  here: "Here",
  hereHint: "after the conversation has gone back to before the prompt",
  alsoFiles: "Put the files back, too",
  send: "Send",

  own: "Branch off in a worktree …",
  ownHint: "a new session with its own copy of the files",
  ownTitle: "Branch off in a worktree",
  ownText:
    "The fork works on its own copy of the files, on a new branch. This session and the fork do not disturb each other, and their changes can be compared.",
  ownBranch: "New branch",
  ownBegin: "Fork",
  ownOpen: (count: number) =>
    count === 0
      ? "It begins with the last commit: nothing is uncommitted here."
      : `It begins with the files as they are now, also with ${count === 1 ? "the one change" : `the ${count} changes`} not committed yet.`,
  ownNoGit: "This folder is not a git repository: a fork can only share it.",

  checkpoints: "Checkpoints",
  checkpointsHint: "Each prompt is a point to go back to, newest first.",
  none: "No prompt was sent from here yet.",
  gone: "rewound",
  earlier: "earlier conversation",
  steered: "sent into a running turn",
  forks: "Forks",
  noForks: "This session has no forks.",
  forkOf: "Fork of",
  compare: "Compare",
  compareTitle: "Compare changes",
  comparedWith: (name: string) => `Compare with ${name}`,
  sameFolder:
    "Both sessions work in the same folder: they have the same changes. Forks with worktrees of their own differ.",
  onlyIn: (name: string) => `only in ${name}`,
  inBoth: "in both",
  same: "the same change in both",
  noChange: "No change here.",
  /** Two sessions of one name. */
  numbered: (name: string, number: number) => `${name} (${number})`,
  diffIn: (path: string, name: string) => `Changes of ${path} in ${name}`,
  missing: "One of the sessions does not exist.",
  chooseFile: "Choose a file to compare it.",
};
