/** Texts of the web app: what the hub reports as a code with parameters. */
import { plural } from "./numbers";

/** The parameters of a code: those that it does not have are empty. */
export interface CodedParams {
  name: string;
  other: string;
  names: readonly string[];
  path: string;
  commit: string;
  ref: string;
  url: string;
  verb: string;
  count: number;
  most: number;
  seconds: number;
  detail: string;
  /** When, in words. */
  until: string;
  pid: number | null;
  /** How the process ended, in words. */
  exit: string;
  /** Why the connection was closed, in words. */
  close: string;
  /** What else is reported, in words. */
  more: string;
}

type Words = (given: CodedParams) => string;

const ended =
  (stopped: string): Words =>
  ({ exit }) =>
    `The CLI ended: ${[stopped, exit].filter(Boolean).join("; ") || "nobody knows how"}.`;
const cause = ({ detail, more }: CodedParams): string => more || detail;
const person = (name: string): string => name || "a command on the hub's machine";
const place = ({ names, path, other }: CodedParams): string => {
  const where = path || (other && `the project ${other}`);
  return `${names.join(", ")}${where && ` in ${where}`}`;
};
const parts = ({ names, count }: CodedParams): string =>
  count > names.length ? `${names.join(", ")} and ${count - names.length} more` : names.join(", ");
const because = (detail: string): string => detail && ` (${detail})`;
const duration = (seconds: number): string => {
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ];
  const [size, unit] = units.find(([one]) => seconds >= one && seconds % one === 0) ?? [1, "s"];
  return `${seconds / size} ${unit}`;
};
const files = (count: number): string => plural(count, "file");

const texts: Record<string, Words> = {
  process_ended: ended(""),
  process_terminated: ended("it did not exit when its input ended, and was terminated"),
  process_killed: ended("it did not stop when it was terminated, and was killed"),
  output_closed: ended("it closed its output and kept running, so it was stopped"),
  input_not_read: () => "The CLI no longer reads its input, but still runs.",
  runner_killed: () => "The runner was killed, and the CLI with it.",
  runner_failed: () => "The runner failed and had to end the CLI; see its log.",
  not_read_to_end: () => "It was not read to its end.",
  not_started: ({ detail }) => `It was not started: ${detail}.`,
  run_finished: () => "This run has ended already.",
  runner_stopping: () => "The runner is stopping.",
  too_many_runs: ({ most }) => `This machine runs at most ${plural(most, "agent")} at once.`,
  no_memory: ({ count, most }) =>
    `Not enough memory: ${count} MiB available, ${most} MiB required.`,
  no_sandbox: ({ name, other }) =>
    `The runner of ${name} (${other}) makes no sandbox, and this session must have one (strict): ` +
    "update Quarterdeck there, or start the session with another mode.",
  moved_away: ({ name, other }) => `Its machine ${name} is away. It is resumed on ${other}.`,
  program_revoked: () => "The token of its program was revoked, or has expired.",
  program_not_back: ({ seconds }) => `Its program did not reconnect within ${seconds} s.`,
  session_ended: () => "The session was ended.",
  cli_tokens_revoked: () => "The tokens of dialling CLIs were revoked.",
  cli_token_revoked: () => "The token of this CLI was revoked.",
  cli_not_back: ({ seconds, close }) =>
    `The CLI did not reconnect within ${seconds} s${close && ` after ${close}`}.`,
  no_cli_came: ({ seconds }) => `No CLI connected within ${seconds} s.`,
  link_closed: () => "The link was closed.",

  machine_lost: () => "The connection to its machine was lost.",
  machine_revoked: () => "The access of its machine was taken back, or has run out.",
  program_lost: () => "The connection to its program was lost.",
  hub_restarted: () => "The hub was restarted, and the CLI has not connected again yet.",
  connection_lost: ({ close }) => `The connection was lost${close && `: ${close}`}.`,

  withdrawn_by_cli: () => "The CLI withdrew it.",
  settled_meanwhile: () => "It was settled while the link was down.",
  run_ended: () => "Its agent ended.",

  not_started_yet: () => "not started yet",
  limit_reached: ({ name, until }) =>
    `The ${(name || "account").replaceAll("_", " ")} limit is reached${until && `, until ${until}`}.`,
  api_retry: ({ detail, count, most }) => `${detail} (${count} of ${most})`,

  silent_after_tool: ({ seconds }) =>
    `A tool gave its result, and nothing has come for ${seconds} s.`,
  no_reaction: ({ seconds }) =>
    `A permission was answered, and the CLI has not reacted for ${seconds} s.`,
  no_result: ({ seconds }) => `The turn continues, and nothing has come for ${seconds} s.`,
  still_runs: ({ seconds }) => `It got the request to end ${seconds} s ago, and still runs.`,
  unstoppable: () => "It was interrupted for its budget, and continued.",
  runs_without_output: () =>
    "The CLI closed its output and still runs: it can report nothing more.",
  input_end_ignored: () => "The CLI did not end when its input ended.",
  empty_resume: (given) => `The conversation was resumed, and nothing came of it: ${cause(given)}`,
  crash_loop: ({ count, seconds }) =>
    `The CLI crashed ${count} times in a row, each time within ${seconds} s of its start.`,
  peer_prompt: ({ pid }) =>
    `Another Claude session (${pid === null ? "an unknown process" : `process ${pid}`}) ` +
    "prompted this one, although it refuses such prompts.",

  not_greeted: ({ seconds }) => `The CLI has not answered within ${seconds} s, and is ended.`,
  turn_end_lost: () => "The end of the turn was lost while the CLI was away; it is idle now.",
  resumed_automatically: (given) => `It is resumed automatically. ${cause(given)}`.trim(),
  no_new_conversation: ({ detail }) => `The new conversation does not begin yet: ${detail}`,
  answer_ignored: ({ name, detail }) => `${name} has answered, and that does not count: ${detail}`,
  continues_from_journal: ({ name, path }) =>
    `It continues on ${name}, in ${path}, as the journal has it.`,
  continues_with_lines: ({ name, path, count }) =>
    `It continues on ${name}, in ${path}, with ${plural(count, "line")}.`,
  transcript_kept: ({ name, count, path }) =>
    `The transcript on ${name} had ${plural(count, "message")} that the journal does not have. ` +
    `It is kept there as ${path}.`,

  rule_applies: (given) =>
    `${given.name} (${given.other}): ${given.verb} ${parts(given)}${because(given.detail)}`,
  rule_may_apply: (given) =>
    `${given.name} (${given.other}): may ${given.verb} ${parts(given)}${because(given.detail)}`,
  policy_failed: ({ detail }) => `the policy could not decide (${detail})`,
  question_to_person: ({ name }) => `${name} is a question to a person`,
  default_applies: (given) =>
    `no rule allows ${parts(given)}, and the default of ${given.other} is ${given.verb}`,
  auto_approved: ({ name }) => `${name} is on the session's auto-approve list`,
  permissions_skipped: () => "a person started the session with permissions skipped",
  no_rule_cli_asks: () => "no rule applies, and the CLI asks",
  no_rule_cli_allows: ({ name }) => `no rule applies, and the CLI allows it in mode ${name}`,
  effect_unknown: ({ detail }) =>
    `its effect is not known (${detail}), and no rule names exactly this call`,
  plan_too_soon: ({ seconds }) =>
    `the plan comes again too soon; ${seconds} s are left to improve it`,
  plan_mode_skips: () =>
    "the CLI was started with permissions skipped, and would not ask in plan mode",
  not_asked: () => "the rules were not asked about this call",
  call_unreadable: () => "the call could not be read, so that no rule can allow it",
  cli_decided: ({ name }) => `the CLI decided by itself, in mode ${name}`,
  called_at_mcp: ({ name }) => `called by ${name} at /mcp`,
  call_refused: ({ detail }) => detail,

  answer_allowed: ({ name }) => `allowed (${name})`,
  answer_edited: ({ name }) => `allowed (${name}), with another input`,
  answer_denied: ({ detail }) => detail || "denied",
  answer_given: () => "answered",
  answer_skipped: () => "skipped",
  plan_fresh: () => "approved, to be done in a new conversation",
  plan_auto: () => "approved, edits accepted",
  plan_manual: () => "approved, every call asked about",
  plan_revise: () => "to be revised",
  plan_rejected: () => "rejected",
  form_answered: ({ name }) => name,
  cli_changes: ({ detail }) => `the CLI changes: ${detail}`,
  granted: ({ names, verb, other, path, seconds, ref }) => {
    const places: Record<string, string> = {
      session: "in this session",
      project: `in the project ${other}`,
      folder: `in ${path}`,
    };
    const until = seconds ? ` for ${duration(seconds)}` : "";
    return `granted ${names.join(", ")} ${places[verb] ?? "in all sessions"}${until} (grant ${ref})`;
  },

  files_staged: ({ count, path }) => `Staged: ${path || files(count)}.`,
  files_unstaged: ({ count, path }) => `Unstaged: ${path || files(count)}.`,
  committed: ({ commit, detail }) => `Committed ${commit}: ${detail}`,
  pushed: ({ name, commit, url }) => `Pushed ${name} (${commit}) to ${url}.`,
  pull_request_opened: ({ name, other, url }) =>
    `Opened a pull request from ${name} into ${other}: ${url}`,
  change_undone: ({ path, count, ref }) =>
    `Undone: ${count ? `${plural(count, "changed place")} of ` : ""}${path}.` +
    (ref && ` What was there is kept: git show ${ref}:${path}`),
  branch_kept: ({ name, path }) =>
    `The branch ${name} is kept${path && `, its worktree is ${path}`}.`,
  branch_merged: ({ name, other, commit, more }) =>
    `${name} is merged into ${other}, which is now at ${commit}. ${more}`.trim(),
  branch_in_base: ({ name, other, more }) => `${other} already has all of ${name}. ${more}`.trim(),
  branch_discarded: ({ name, ref }) =>
    `The worktree and the branch ${name} were removed` +
    (ref ? `. The work is saved: git branch ${name} ${ref}` : "; no work was lost."),
  worktree_removed: () => "Its worktree and branch are removed.",
  worktree_will_go: () => "Then its worktree and branch are removed.",
  worktree_stays: () => "Its worktree stays.",
  would_discard: ({ name, count }) =>
    `The worktree and the branch ${name} will be removed.` +
    (count ? ` It has ${plural(count, "uncommitted file")}.` : "") +
    " Work that is nowhere else is saved first under a ref of git.",
  would_merge: ({ name, other, count, most, more }) =>
    `${plural(count, "commit")} of ${name} will be merged into ${other}.` +
    (most
      ? ` First, ${plural(most, "uncommitted file")} will be committed with your message; that may conflict.`
      : "") +
    ` ${more}`,
  branch_as_here: ({ name, detail }) =>
    `The branch ${name} is as this machine has it: ${detail || "the repository has no remote"}.`,
  branch_diverged: ({ name, commit, ref }) =>
    `The branch ${name} is as this machine has it (${commit}). The remote has other commits (${ref}).`,
  branch_behind: ({ name, commit, ref, detail }) =>
    `The branch ${name} is as the worktree on this machine has it (${commit}). ` +
    `The remote is ahead (${ref}): ${detail}.`,

  cli_starts_revoked: ({ name }) =>
    `The token of CLIs that begin a session was revoked by ${person(name)}.`,
  cli_access_revoked: ({ name }) => `The token of its CLI was revoked by ${person(name)}.`,
  token_made: ({ name, other, names, seconds }) =>
    `${name} made a token for ${other} (${names[0] ?? ""}), valid for ${plural(seconds / 86_400, "day")}.`,
  access_revoked: ({ name, other, names }) =>
    `${name} took back the access of ${other} (${names.join(", ")}).`,
  login_link_made: ({ name, other, names }) =>
    `${name} made a login link for ${other} (${names[0] ?? ""}).`,
  share_made: ({ name, other, seconds }) =>
    `${name} made the read-only link “${other}” for ${seconds / 3600} h.`,
  share_revoked: ({ name, other }) => `${name} revoked the read-only link “${other}”.`,
  share_opened: ({ other, detail }) =>
    `The read-only link “${other}” was opened from ${detail || "an address"}.`,
  policy_changed: ({ name, other, commit }) =>
    `${name} changed the policy ${other}: version ${commit} is in force.`,
  grant_made: (given) => `${given.name} granted ${place(given)}.`,
  grant_revoked: (given) => `${given.name} took back ${place(given)}, granted by ${given.detail}.`,
  template_saved: ({ name, other }) => `${name} saved the session template ${other}.`,
  template_removed: ({ name, other }) => `${name} removed a session template (${other}).`,
  schedule_saved: ({ name, other }) => `${name} saved the schedule ${other}.`,
  schedule_removed: ({ name, other }) => `${name} removed the schedule ${other}.`,
};

const acts: Record<string, string> = {
  answer_repeated: "The answer was sent again.",
  turn_interrupted: "The turn was interrupted.",
  run_ended: "The CLI was ended; the session can be resumed.",
  run_killed: "The CLI was killed.",
  cli_ended: "The CLI was ended.",
  cli_signalled: "The CLI was ended by signals.",
  not_tried_again: "It is not tried again by itself.",
  not_started_again: "It is not started again by itself.",
};

const exits: Record<number, string> = {
  0: "it exited normally",
  126: "the command was found but could not be executed",
  127: "the command was not found",
};
const signals: Record<number, string> = {
  1: "its terminal or parent process ended (SIGHUP)",
  2: "it was interrupted (SIGINT)",
  6: "it crashed (SIGABRT)",
  9: "it was killed, possibly for lack of memory (SIGKILL)",
  11: "it crashed (SIGSEGV)",
  13: "its output was not read (SIGPIPE)",
  15: "it was asked to stop (SIGTERM)",
};
const closes: Record<number, string> = {
  1000: "the other end closed it",
  1001: "the other end is going away",
  1006: "the connection broke",
  1011: "the other end failed, or did not answer a ping",
  1012: "the other end is restarting",
  4000: "another connection took its place",
  4001: "the session is over",
  4003: "the token is no longer valid",
};

export const coded = {
  texts,
  acts,
  exit: (code: number) => `${exits[code] ?? "it exited with an error"} (exit code ${code})`,
  signal: (signal: number) => signals[signal] ?? `a signal ended it (${signal})`,
  close: (code: number) => `${closes[code] ?? "the connection was closed"} (close code ${code})`,
  /** A code of a newer hub. */
  unknown: (code: string, detail: string) =>
    [code.replaceAll("_", " "), detail].filter(Boolean).join(": "),
  alarm: (what: string, done: string) => `${what} ${done}`.trim(),
};
