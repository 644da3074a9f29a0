// Requests to the hub. Every failure is an `ApiError` with the hub's own words, or says that the hub
// cannot be reached.
import { forgetTyped } from "../state/drafts";
import { text } from "../text";
import { forgetPageKey, keyHeaders } from "./pageKey";
import type { Problem } from "./types";

export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** An error in words for a person. */
export const errorText = (failure: unknown): string =>
  failure instanceof Error ? failure.message : String(failure);

export function toApiError(problem: Problem): ApiError {
  const message = problem.detail ? `${problem.title}: ${problem.detail}` : problem.title;
  return new ApiError(problem.code, message, problem.status);
}

async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const init: RequestInit = { method, headers: { Accept: "application/json", ...keyHeaders() } };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError("unreachable", text.states.errors.unreachable, 0);
  }
  if (response.ok) return response;
  throw await errorIn(response);
}

async function errorIn(response: Response): Promise<ApiError> {
  try {
    return toApiError((await response.json()) as Problem);
  } catch {
    return new ApiError(
      "unreadable",
      text.states.errors.unreadable(response.status),
      response.status,
    );
  }
}

export async function get<T>(
  path: string,
  query: Record<string, string | number | boolean | undefined> = {},
): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)]));
  const response = await request("GET", given.length ? `${path}?${search}` : path);
  return (await response.json()) as T;
}

async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await request(method, path, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const post = <T>(path: string, body?: unknown): Promise<T> => send("POST", path, body);
export const patch = <T>(path: string, body: unknown): Promise<T> => send("PATCH", path, body);
export const remove = <T>(path: string, body?: unknown): Promise<T> => send("DELETE", path, body);
export const put = <T>(path: string, body: unknown): Promise<T> => send("PUT", path, body);

/** End this browser's login: its cookie, its page key, the hub's record of them, typed texts. */
export async function logout(): Promise<void> {
  try {
    await post("/api/logout");
  } finally {
    forgetPageKey();
    forgetTyped();
  }
}

/** The path of a session in the API, and of a part of it. */
export const sessionPath = (id: string, rest = ""): string =>
  `/api/sessions/${encodeURIComponent(id)}${rest}`;
