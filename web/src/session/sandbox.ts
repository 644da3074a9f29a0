// What a session's sandbox is called, and why there is none.
import type { components } from "../api/schema";
import { lookup } from "../state/lookup";
import { text } from "../text";

export type SandboxState = components["schemas"]["SandboxState"];

const words = text.states.sandbox;
export const SANDBOX_MODES: Record<string, string> = words.modes;

/** The text beside the shield. */
export function sandboxLabel(state: SandboxState | undefined): string {
  if (!state?.mode || state.mode === "off") return words.none;
  return words.mode(state.mode);
}

/** What a person may want to know of it. */
export function sandboxDetails(state: SandboxState | undefined): string {
  const detail = state?.detail ? ` ${state.detail}` : "";
  if (!state?.mode || state.mode === "off") {
    return `${lookup(words.reasons, state?.reason ?? "not_recorded") ?? ""}${detail}`.trim();
  }
  const network = state.network ?? "all";
  const hosts =
    network === "all"
      ? words.allHosts
      : network === "model"
        ? words.modelOnly
        : words.modelAnd(network.join(", "));
  return `${words.made(state.kind ?? "", hosts)}${detail}`;
}
