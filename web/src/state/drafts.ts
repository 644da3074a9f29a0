// What a person typed and the hub does not have yet. It is in the browser's storage, so that a
// closed page, a lost network or a crash loses none of it.

export interface Unsent {
  session: string;
  id: string;
  content: unknown;
  error?: string;
}
export type Drafts = Readonly<Record<string, Unsent>>;

const PROMPTS = "quarterdeck.unsent";
const DRAFT = "quarterdeck.draft.";

export function keptPrompts(): Drafts {
  try {
    return JSON.parse(localStorage.getItem(PROMPTS) ?? "{}") as Drafts;
  } catch {
    return {};
  }
}

export function keepPrompt(drafts: Drafts, prompt: Unsent): Drafts {
  store({ ...keptPrompts(), [prompt.id]: prompt });
  return { ...drafts, [prompt.id]: prompt };
}

export function letGo(drafts: Drafts, id: string): Drafts {
  store(without(keptPrompts(), id));
  return without(drafts, id);
}

function without(drafts: Drafts, id: string): Drafts {
  const { [id]: _, ...left } = drafts;
  return left;
}

/** Other tabs of this browser keep theirs in the same place: what is there is read first. */
function store(drafts: Drafts): void {
  try {
    localStorage.setItem(PROMPTS, JSON.stringify(drafts));
  } catch {
    // Too large for the storage (pictures): it is still in memory, and on the screen.
  }
}

/** What stands in a composer, for the next time that it is opened. */
export function draftOf(session: string): string {
  return localStorage.getItem(DRAFT + session) ?? "";
}

export function keepDraft(session: string, text: string): void {
  try {
    if (text) localStorage.setItem(DRAFT + session, text);
    else localStorage.removeItem(DRAFT + session);
  } catch {
    // As above.
  }
}
