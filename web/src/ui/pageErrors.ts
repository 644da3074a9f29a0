// Errors that nobody caught: in an event handler, in a promise. They are shown to the person who
// looks at the page, who would otherwise see that nothing happens and not know why.
import { ApiError, errorText } from "../api/http";

export interface PageError {
  text: string;
  /** How often it happened. */
  count: number;
}

/** More than these are not read by anybody. */
const MOST = 3;
/** What browsers report as an error though nothing has failed. */
const HARMLESS = /^(Uncaught )?(Error: )?ResizeObserver loop|^Script error\.?$/;

let faults: readonly PageError[] = [];
const listeners = new Set<() => void>();

function set(next: readonly PageError[]): void {
  faults = next;
  for (const listener of listeners) listener();
}

export const getPageErrors = (): readonly PageError[] => faults;

export function subscribePageErrors(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Show an error; one that is shown already is counted. */
export function report(error: unknown): void {
  const words = errorText(error) || "unknown error";
  if (HARMLESS.test(words)) return;
  // What the hub refused is said in its own words; everything else is a fault of this page.
  const text = error instanceof ApiError ? words : `Error in this page: ${words}`;
  const before = faults.find((one) => one.text === text);
  const others = faults.filter((one) => one !== before);
  set([...others, { text, count: (before?.count ?? 0) + 1 }].slice(-MOST));
}

export function dismiss(text: string): void {
  set(faults.filter((one) => one.text !== text));
}

/** From now on, show what nobody catches. Gives what ends that. */
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
