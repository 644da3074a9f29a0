// Saved prompts and session templates, which the hub keeps; and the prompts that this browser has sent.
import { get, put, remove } from "../api/http";
import type { components } from "../api/schema";
import { newId } from "../ui/format";
import { HISTORY } from "./drafts";
import { Observable, useObservable } from "./observable";

type Schemas = components["schemas"];
export type Library = Schemas["Library"];
export type SavedPrompt = Schemas["SavedPrompt"];
export type Template = Schemas["SessionTemplate"];
export type NewTemplate = Schemas["NewTemplate"];

const MOST_HISTORY = 100;
const LONGEST_HISTORY = 4000;

const library = new Observable<{ found: Library | undefined }>({ found: undefined });

export const useLibrary = (): Library | undefined => useObservable(library, (one) => one.found);

/** Read it again; a hub that has none leaves it empty. */
export async function loadLibrary(): Promise<void> {
  library.set({ found: await get<Library>("/api/library") });
}

export async function savePrompt(name: string, text: string, shared: boolean): Promise<void> {
  const path = `/api/library/prompts/${newId()}`;
  library.set({ found: await put<Library>(path, { name, text, shared }) });
}

export async function removePrompt(id: string): Promise<void> {
  library.set({ found: await remove<Library>(`/api/library/prompts/${encodeURIComponent(id)}`) });
}

export async function saveTemplate(template: NewTemplate): Promise<void> {
  library.set({ found: await put<Library>(`/api/library/templates/${newId()}`, template) });
}

export async function removeTemplate(id: string): Promise<void> {
  library.set({ found: await remove<Library>(`/api/library/templates/${encodeURIComponent(id)}`) });
}

// --- the prompts of this browser ------------------------------------------------------------------

/** Earlier prompts, the newest first. */
export function sentPrompts(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function rememberPrompt(text: string): void {
  if (!text || text.length > LONGEST_HISTORY) return;
  const next = [text, ...sentPrompts().filter((one) => one !== text)].slice(0, MOST_HISTORY);
  try {
    localStorage.setItem(HISTORY, JSON.stringify(next));
  } catch {
    // The storage is full: the sessions have their prompts all the same.
  }
}
