/** Texts of the web app: settings. */

export const settings = {
  title: "Settings",
  browser: "This browser",
  theme: "Theme",
  themes: {
    system: "system",
    light: "light",
    dark: "dark",
    contrast: "high contrast",
  } as Record<string, string>,
  preferences: {
    notify: "Notify me when an agent is waiting and this page is hidden",
    push: "Notify me on this device even when Quarterdeck is closed",
    sound: "Play a sound when an agent is waiting",
  },
  blocked: "Blocked by the browser.",

  // push
  pushOf: "Notify this device of",
  kinds: {
    question: "questions that wait for an answer",
    finished: "turns that have finished",
    failed: "turns and agents that have failed",
    budget: "budgets that are spent",
  },
  buttons: "Buttons in notifications: Deny, and Allow once",
  buttonsHint:
    "A person who sees the notification can press them, also on a locked screen. Allow is offered only for a short command that the notification shows completely, and allows one call.",
  insecurePush: "Notifications need https, or a hub on localhost. See “Encryption”.",

  // keys
  keys: "Keys and answers",
  showKeys: "Show all keys",

  // you
  you: "You",
  follows:
    "Pins, read marks and drafts follow you to every device where you log in with this name.",
  logOut: "Log out",
  pairTelegram: "Pair a Telegram chat",
  sendBot: "Within ten minutes, send the bot:",

  // another device
  device: "Another device",
  deviceHint:
    "Make a link that logs in a phone or another computer. It works once, for ten minutes. The first person who opens it has your access.",
  deviceFor: "For whom",
  deviceRole: "Role",
  myself: "yourself",
  otherName: "Name of the person",
  makeLink: "Make a login link",
  scan: "Scan this with the other device, or open the link there.",
  qr: "QR code of the login link",
  address: "Address",
  onlyHere:
    "This address works only on this machine. Let the hub listen for others first: see “Encryption”.",
  copyLink: "Copy the link",
  copied: "Copied",
  expired: "The link has expired.",

  // encryption
  encryption: "Encryption",
  nowSecure: "This page is encrypted.",
  nowLocal: "This page comes from this machine and needs no encryption.",
  nowPlain: "This page is not encrypted: everybody on the way can read it.",
  ways: "Three ways to https",
  wayFiles: "Certificate files",
  wayFilesHow: "Give the files of a certificate for the hub's name:",
  wayFilesCommand: "quarterdeck serve --host 0.0.0.0 --certificate FULLCHAIN.pem --key KEY.pem",
  wayTailscale: "Tailscale",
  wayTailscaleHow:
    "With Tailscale on this machine and your devices, the hub gets a certificate that they trust. Without it, the hub makes its own, which you must trust on each device:",
  wayTailscaleCommand: "quarterdeck serve --host 0.0.0.0 --tls auto",
  wayProxy: "A proxy",
  wayProxyHow: "A web server in front of the hub has the certificate:",
  wayProxyCommand:
    "quarterdeck serve --proxy 127.0.0.1 --allow-host deck.example --allow-origin https://deck.example",
  inUse: "in use",
  available: (name: string) => `Available: this machine is ${name}`,
  notInstalled: "Tailscale gives this machine no certificate.",
  certificateOf: (names: string, ends: string) => `Certificate for ${names}, valid until ${ends}.`,
  certificateProblems: {
    expired: "The certificate has expired.",
    not_yet_valid: "The certificate is not valid yet.",
  } as Record<string, string>,
  wrongName: (name: string) => `The certificate is not for ${name}.`,
  unreadable: (why: string) => `The certificate cannot be read: ${why}`,
  proxySeen: "The proxy passes on that this page is encrypted.",
  proxyNotSeen: "A proxy is configured, but this page did not come through it over https.",
  trustPage: "Trust the hub's certificate on another device",
  howTo: "How to reach the hub from elsewhere",

  // access
  access: "Access",
  heads: { name: "name", role: "role", kind: "kind", expires: "expires" },
  never: "never",
  thisBrowser: "this browser",
  revokeAsk: (name: string) => `Revoke the access of “${name}”?`,
  accessOf: (name: string) => `access of ${name}`,
  tokenName: "Name of the token",
  tokenRole: "Role of the token",
  namePlaceholder: "Name",
  createToken: "Create token",
  programHint:
    "“program” is for programs that run their agents through the hub with quarterdeck-claude. It can connect agents and answer what they ask, and nothing else.",
  copyNow: "Copy it now, it is shown only once:",

  // links
  links: "Links to single sessions",
  linksHint:
    "Read-only links to one session, for people without access. Make one from a session's menu.",
  noLinks: "No link is valid.",
  session: "session",
  linkOf: (name: string) => `link ${name}`,
  share: "Share by a link",
  shareHint:
    "Everybody with the link can read this session, with all commands, files and answers in it, until the link expires. They cannot write, and see no other session.",
  shareName: "For whom",
  shareHours: "Valid for",
  hours: { 1: "1 hour", 24: "1 day", 168: "7 days", 720: "30 days" } as Record<string, string>,
  makeShare: "Make the link",

  // hub
  hub: "The hub",
  version: (version: string) => `Quarterdeck ${version}`,
  runDoctor: "Check the hub's machine",
  checking: "Checking …",
  levels: { ok: "ok", note: "note", warning: "warning", problem: "problem" } as Record<
    string,
    string
  >,
  allGood: "No problem was found.",

  // the page of a link
  shared: "Shared session",
  sharedUntil: (when: string) => `Read-only. This link works until ${when}.`,
  sharedGone: "This link has expired or was revoked.",
  sharedLoading: "Loading …",
};
