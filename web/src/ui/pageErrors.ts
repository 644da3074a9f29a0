// Uncaught errors: of event handlers and of promises. They are shown on the page, where a person
// would otherwise see that nothing happens and not know why.

import { ApiError, errorText } from "../api/http";
import { text as catalogue } from "../text";

export interface PageError {
  text: string;
  /** How often it happened. */
  count: number;
}

/** More than these would fill the page. */
const MOST = 3;
/** Browsers report these though nothing has failed. */
const HARMLESS = /^(Uncaught )?(Error: )?ResizeObserver loop|^Script error\.?$/;

let errors: readonly PageError[] = [];
const listeners = new Set<() => void>();

function set(next: readonly PageError[]): void {
  errors = next;
  for (const listener of listeners) listener();
}

export const getPageErrors = (): readonly PageError[] => errors;

export function subscribePageErrors(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Show an error; one that is shown already is counted. */
export function report(error: unknown): void {
  const words = errorText(error) || catalogue.app.unknownError;
  if (HARMLESS.test(words)) return;
  // The hub's refusals have their own words; everything else is a bug of this page.
  const text = error instanceof ApiError ? words : catalogue.states.errors.inPage(words);
  const before = errors.find((one) => one.text === text);
  const others = errors.filter((one) => one !== before);
  set([...others, { text, count: (before?.count ?? 0) + 1 }].slice(-MOST));
}

export function dismiss(text: string): void {
  set(errors.filter((one) => one.text !== text));
}

/** Show uncaught errors from now on. Gives a function that stops it. */
export function watchPageErrors(): () => void {
  const failed = (event: ErrorEvent): void => report(event.error ?? event.message);
  const rejected = (event: PromiseRejectionEvent): void => report(event.reason);
  window.addEventListener("error", failed);
  window.addEventListener("unhandledrejection", rejected);
  return () => {
    window.removeEventListener("error", failed);
    window.removeEventListener("unhandledrejection", rejected);
  };
}
