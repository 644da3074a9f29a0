/** Texts of the web app: the composer. */

export const composer = {
  readOnly: "You have read-only access.",
  label: "Prompt for the agent",
  placeholderIdle: "What should the agent do?",
  placeholderBusy: "Sent when the current turn ends …",
  send: "Send",
  queue: "Queue",
  steer: "Steer",
  sendTitle: "Key: Enter",
  sendTitleTouch: "Send the prompt",
  queueTitle: "Send when the current turn has ended (key: Enter)",
  steerTitle:
    "Send into the running turn: the model reads it with its next tool result (keys: Ctrl Enter)",
  interrupt: "Interrupt",
  interruptTitle: "End the running turn; the agent stays (key: Escape)",
  reading: "Reading the files …",

  // queue
  queuedPrompts: "Queued prompts",
  queued: "queued",
  edit: "Edit",
  editPrompt: "Edit prompt",
  save: "Save",
  back: "Back",
  cancel: "Cancel",
  unsentPrompts: "Unsent prompts",
  notSent: "not sent",
  sending: "sending",
  withAttachments: "(with attachments)",
  retry: "Retry",
  discard: "Discard",

  // attachments
  attach: "Attach files",
  attachments: "Attachments",
  remove: (name: string) => `Remove ${name}`,
  unnamed: "file",
  tooLargeImage: (name: string) => `${name}: the image is too large, also when it is made smaller.`,
  tooLargePdf: (name: string, megabytes: number) =>
    `${name}: a PDF can have up to ${megabytes} MB.`,
  tooLargeText: (name: string, kilobytes: number) =>
    `${name}: a text can have up to ${kilobytes} kB as an attachment. Put it into the folder of the session, and write @ with its path.`,
  tooLargeFile: (name: string, megabytes: number) =>
    `${name}: a file can have up to ${megabytes} MB.`,
  tooMuch: (name: string, megabytes: number) =>
    `${name}: the attachments of a prompt can have up to ${megabytes} MB together.`,
  tooMany: (most: number) => `A prompt can have up to ${most} attachments.`,
  empty: (name: string) => `${name}: the file is empty.`,
  notAsNamed: (name: string, kind: string) => `${name}: the content is not ${kind}.`,
  unreadableImage: (name: string) => `${name}: this browser cannot read the image.`,
  unreadable: (name: string) => `${name}: the file cannot be read.`,
  otherKind: (name: string) => `${name}: only images, PDFs and texts can be attached here.`,
  notOwner: (name: string) =>
    `${name}: only owners can store files of this kind in the folder of the session.`,
  stored: (path: string) => `Stored in the session's folder: ${path}`,

  // menus
  suggestions: "Suggestions",
  own: "own",
  moreItems: (count: number) => `${count} more: type to narrow the list.`,

  // history and library
  prompts: "Saved and earlier prompts",
  promptsTitle: "Prompts",
  filter: "Filter",
  library: "Library",
  history: "Earlier prompts",
  noLibrary: "No saved prompt yet. Write one, then choose “Save this prompt”.",
  noHistory: "No earlier prompt.",
  nothingMatches: "Nothing matches.",
  saveThis: "Save this prompt",
  saveName: "Name of the saved prompt",
  share: "Share with everybody",
  shared: (by: string) => `shared by ${by}`,
  private: "only for you",
  remove1: (name: string) => `Delete ${name}`,
  removed: "Deleted.",

  // voice
  dictate: "Dictate",
  dictating: "Stop dictating",
  voiceErrors: {
    "not-allowed": "The browser does not allow the microphone here.",
    "service-not-allowed": "The browser does not allow speech recognition here.",
    "audio-capture": "There is no microphone.",
    network: "The speech recognition of this browser cannot be reached.",
    "no-speech": "No speech was recognised.",
  } as Record<string, string>,
  voiceFailed: "Speech recognition has failed.",
};
