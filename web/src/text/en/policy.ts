/** Texts of the web app: the policy page. */

const count = (number: number, one: string, many: string): string =>
  `${number} ${number === 1 ? one : many}`;

export const policy = {
  title: "Policy",
  parts: "Parts of the policy",
  tabs: {
    rules: "Rules",
    edit: "Edit",
    explain: "Explain",
    audit: "Audit log",
    replay: "Replay",
    suggestions: "Suggestions",
  },
  none: "No policy file is in force",
  noneHint:
    "Claude Code's own settings decide, and it asks about the rest. Write rules in Edit, or to a file, and check it with",
  noneCommand: "quarterdeck policy check FILE",
  names: (names: string) => `Policies that a session can name: ${names || "none"}`,
  inForce: { file: "in force", kept: "last good text in force", asking: "asks about everything" },
  facts: (rules: number, examples: number) =>
    `${count(rules, "rule", "rules")}, ${count(examples, "example", "examples")}`,
  default: (verdict: string) => `default: ${verdict}`,
  since: (when: string) => `since ${when}`,
  flaw: (line: number, text: string) => `line ${line}: ${text}`,
  warning: (line: number, text: string) => `line ${line}: warning: ${text}`,
  verdicts: { allow: "allow", deny: "deny", ask: "ask", cli: "left to the CLI" },
  grants: {
    title: "Grants",
    none: "No grants yet. “Always allow” on a question adds one.",
    heads: { rules: "rules", where: "where", by: "granted by", expires: "expires" },
    by: (who: string, when: string) => `${who}, ${when}`,
    never: "never",
    inSession: (session: string) => `session ${session}`,
    everywhere: "everywhere",
  },
  suggestions: {
    none: "No suggestions from the last 30 days",
    noneHint: "Calls that people often answer in the same way appear here.",
    history: (allowed: number, denied: number, people: string, first: string, last: string) =>
      `${count(allowed, "time", "times")} allowed, ${count(denied, "time", "times")} denied, by ${people}; from ${first} to ${last}`,
    examples: (examples: string) => `Examples: ${examples}`,
    admits: (calls: string) => `It would also allow: ${calls}`,
  },
  explain: {
    tool: "Tool",
    session: "Session",
    noSession: "none",
    policy: "Policy",
    inForce: "the policy in force",
    argument: "Command, file, or the whole input as JSON",
    example: "git push --force",
    explain: "Explain",
    explanation: "Explanation",
    by: (rule: string) => `by “${rule}”`,
    heads: { needs: "what the call needs", rules: "matching rules" },
    always: "always allowed",
    may: "(may match)",
    noRules: "none",
    unknown: "Unknown before it runs",
    atCharacter: (place: number) => `at character ${place}`,
  },
  replay: {
    policy: "Policy to test (it is not put in force)",
    period: "Period",
    week: "the last 7 days",
    month: "the last 30 days",
    year: "the last year",
    run: "Run replay",
    result: "Result of the replay",
    calls: (calls: number, same: number) => `${count(calls, "call", "calls")}, ${same} unchanged`,
    truncated: "There were more calls; the oldest are left out.",
    change: (times: number, change: string) => `${times} × ${change}`,
    heads: ["time", "call", "then", "now", "reasons"],
    by: (who: string) => `by ${who}`,
  },
  audit: {
    session: "Session",
    all: "all sessions",
    kind: "Entries",
    kinds: {
      all: "all entries",
      denied: "denied",
      people: "answered by people",
      changes: "changes by people",
      programs: "acts of programs",
      sandbox: "sandbox",
      refused: "refused by the sandbox",
    },
    verify: "Verify and reload",
    heads: { time: "time", verdict: "verdict", call: "call", by: "by", reasons: "reasons" },
    none: "No decisions yet",
    noneHint: "Every call that was allowed or denied is here, with who or what decided it.",
    noneYet: "None among the newest entries",
    noneYetHint: "The hub looks at 2,000 entries at a time. Earlier ones were not searched yet.",
    searchOn: "Search earlier entries",
    earlier: "Load earlier",
    times: (times: number) => `${times} times`,
    connection: "connection",
    sandbox: "sandbox",
    start: "start",
    runner: "runner",
    access: "access",
    /** What a program has done. */
    acts: { request: "request", hook: "hook" },
    /** What a person has changed. */
    changes: {
      policy: "policy",
      grant: "grant",
      token: "token",
      login: "login link",
      link: "read-only link",
      schedule: "schedule",
      template: "template",
    },
    answer: "answer",
    changed: "(changed)",
    rule: (rule: string, source: string) => `${rule} (${source})`,
    flaws: (flaws: number) =>
      `${flaws === 1 ? "1 entry was" : `${flaws} entries were`} changed or removed:`,
    good: (entries: number) =>
      `${count(entries, "entry", "entries")}, none changed. Keep this head to prove it later:`,
    flaw: (position: number, text: string) => `${position}: ${text}`,
  },
  edit: {
    file: "File",
    forAll: "policy.toml (all sessions)",
    text: "Rules (TOML)",
    path: (path: string) => `Saved to ${path}`,
    newFile: "(this file does not exist yet)",
    start: "Start with an example",
    example: `# What agents may do without a question, and what they may not do at all.

[[rule]]
name = "tests run without a question"
verdict = "allow"
command = ["npm test", "pytest"]

[[rule]]
name = "no force pushes"
verdict = "deny"
command = "git push"
flags = ["--force", "-f"]
message = "Push to a branch of your own, and open a pull request."

[[rule]]
name = "ask before secrets are read"
verdict = "ask"
path = "**/.env"
`,
    check: "Check",
    save: "Save and put in force",
    reload: "Load again",
    saved: "Saved. The policy is in force for all calls from now on.",
    unsaved: "You have changes that are not saved.",
    good: (rules: number, examples: number) =>
      `Valid: ${count(rules, "rule", "rules")}, ${count(examples, "example", "examples")} passed.`,
    tryTitle: "Try calls",
    tryHint: "How these calls are decided now, and how the text above would decide them.",
    tryHeads: ["call", "in force", "with these rules"],
    tool: "Tool of the call",
    argument: "Command or file of the call",
    add: "Add call",
    remove: (call: string) => `Remove ${call}`,
    run: "Try all",
    pastTitle: "Replay past calls",
    pastHint: "Which decisions of the past would be different.",
    confirmTitle: "Put this policy in force?",
    confirm: (file: string) =>
      `${file} is replaced, and decides about the next call of every session that it is for.`,
    confirmUntried: "You have not tried it against past calls yet.",
    noRight: "Only owners can edit policies.",
  },
};
