/** Texts of the web app: the frame around all pages. */

export const app = {
  name: "Quarterdeck",
  inbox: "Inbox",
  nothingWaits: "No agent is waiting for you",
  nothingWaitsHint: "Questions, plans and permission requests of all agents appear here.",
  loading: "Loading …",
  skip: "Skip",
  skipToPage: "Skip to the page",
  skipToComposer: "Skip to the composer",
  backToSessions: "Back to sessions",
  loggedOut: "You are not logged in",
  loginBefore: "Run",
  loginCommand: "quarterdeck token --login",
  loginAfter: "on the hub's machine, and open the link that it prints in this browser.",
  enterCode: "Enter a login code",
  accessEnded: "Your access was revoked or has expired. Log in again.",
  hubAway: "The hub cannot be reached. Agents keep working; this page reconnects automatically.",
  connection: "Connection",
  notEncrypted:
    "This connection is not encrypted: others in your network can read it. Notifications and the offline page need https.",
  offline: "The hub cannot be reached",
  offlineHint:
    "This is the app alone, from this device. Agents keep working; everything appears here as soon as the hub answers.",
  dismiss: "Dismiss",
  times: (count: number) => `(${count} times)`,
  things: {
    list: "list of sessions",
    tabs: "tab bar",
    page: "page",
    session: "session",
    question: "question",
  },
  notDisplayed: (what: string) => `This ${what} could not be displayed:`,
  rawJson: "Raw JSON",
  unknownError: "unknown error",
  notJson: (why: string) => `This is not JSON: ${why}`,
  titleWaiting: (count: number) => `(${count}) Quarterdeck`,
  anAgent: "An agent",
  isWaiting: (name: string) => `${name} is waiting for you`,
  invisible: "Invisible in the text itself",
  looksLike: (other: string) => `Looks like ${other}, and is another character`,
  actions: "actions",
  revoke: "Revoke",
  revokeWhat: (what: string) => `Revoke ${what}`,
  tour: {
    title: "Tour",
    step: (at: number, of: number) => `${at} of ${of}`,
    next: "Next",
    before: "Back",
    end: "Done",
    close: "Close the tour",
    steps: [
      {
        path: "/",
        title: "The inbox",
        words:
          "Six scripted agents are at work, and three wait for you. Every question of every agent is here, oldest first. Answer one, or select several calls of the same tool and answer them together.",
      },
      {
        path: "/s/demo-checkout",
        title: "A permission request",
        words:
          "The card shows the whole command. Allow it once, for the session, or always: each says exactly which rule it adds. Nothing is granted by a stray key.",
      },
      {
        path: "/s/demo-plan",
        title: "A plan with comments",
        words:
          "Comment on single parts of a plan and send it back. This is the second version: the comments on the first are above it.",
      },
      {
        path: "/s/demo-changes",
        title: "Work to review",
        words:
          "This agent has changed 25 files. Open Changes to read them, comment on lines, undo single parts, and commit.",
      },
      {
        path: "/policy?part=edit",
        title: "Rules instead of questions",
        words:
          "A policy decides what needs no question. Edit it here, try calls against it, and replay past calls before you save. The audit log says who or what decided each call.",
      },
    ],
  },
};
