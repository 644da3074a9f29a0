// What a session's sandbox is called, and why there is none.
import type { components } from "../api/schema";
import { lookup } from "../state/lookup";

export type SandboxState = components["schemas"]["SandboxState"];

export const SANDBOX_MODES: Record<string, string> = {
  protect: "protect where possible",
  strict: "strict",
  off: "off",
};

const REASONS: Record<string, string> = {
  chosen: "It was turned off.",
  not_asked: "The hub did not ask for one.",
  not_available: "The machine cannot make one.",
  old_runner: "The runner of the machine is too old: update Quarterdeck there.",
  not_recorded: "It is not recorded whether there was one.",
};

/** The text beside the shield. */
export function sandboxLabel(state: SandboxState | undefined): string {
  if (!state?.mode || state.mode === "off") return "No sandbox";
  return `Sandbox: ${state.mode}`;
}

/** What a person may want to know of it. */
export function sandboxDetails(state: SandboxState | undefined): string {
  const detail = state?.detail ? ` ${state.detail}` : "";
  if (!state?.mode || state.mode === "off") {
    return `${lookup(REASONS, state?.reason ?? "not_recorded") ?? ""}${detail}`.trim();
  }
  const network = state.network ?? "all";
  const hosts =
    network === "all"
      ? "all hosts"
      : network === "model"
        ? "the model's host only"
        : `the model's host and ${network.join(", ")}`;
  return `Made by ${state.kind ?? ""}. Network: ${hosts}.${detail}`;
}
