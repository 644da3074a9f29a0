// What a person typed and the hub does not have yet. It is in the browser's storage, so that a
// closed page, a lost network or a crash loses none of it.

export interface UnsentPrompt {
  session: string;
  id: string;
  content: unknown;
  /** It is for the running turn. */
  steer?: boolean;
  error?: string;
}
export type UnsentPrompts = Readonly<Record<string, UnsentPrompt>>;

const UNSENT = "quarterdeck.unsent";
export const DRAFT_PREFIX = "quarterdeck.draft.";
/** The prompts that were sent from this browser. */
export const HISTORY = "quarterdeck.history";

export function loadUnsent(): UnsentPrompts {
  try {
    return JSON.parse(localStorage.getItem(UNSENT) ?? "{}") as UnsentPrompts;
  } catch {
    return {};
  }
}

export function saveUnsent(prompts: UnsentPrompts, prompt: UnsentPrompt): UnsentPrompts {
  store({ ...loadUnsent(), [prompt.id]: prompt });
  return { ...prompts, [prompt.id]: prompt };
}

export function removeUnsent(prompts: UnsentPrompts, id: string): UnsentPrompts {
  store(without(loadUnsent(), id));
  return without(prompts, id);
}

function without(prompts: UnsentPrompts, id: string): UnsentPrompts {
  const { [id]: _, ...left } = prompts;
  return left;
}

/** Other tabs of this browser use the same key: callers read what is stored first. */
function store(prompts: UnsentPrompts): void {
  try {
    localStorage.setItem(UNSENT, JSON.stringify(prompts));
  } catch {
    // Too large for the storage (images): it is still in memory, and on the screen.
  }
}

/** Remove all that a person typed: the next one at this browser must not find it. */
export function forgetTyped(): void {
  for (const key of Object.keys(localStorage))
    if (key === UNSENT || key === HISTORY || key.startsWith(DRAFT_PREFIX))
      localStorage.removeItem(key);
}

/** The text in a session's composer, for the next time that it is opened. */
export function loadDraft(session: string): string {
  return localStorage.getItem(DRAFT_PREFIX + session) ?? "";
}

export function saveDraft(session: string, text: string): void {
  try {
    if (text) localStorage.setItem(DRAFT_PREFIX + session, text);
    else localStorage.removeItem(DRAFT_PREFIX + session);
  } catch {
    // As above.
  }
}
