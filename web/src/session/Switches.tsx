import type { ControlRequest, Session } from "../api/types";
import { lookup } from "../state/lookup";
import { store, useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";

/** The permission modes of the CLI, in words. */
export const MODES: Record<string, string> = {
  default: "default",
  plan: "plan",
  acceptEdits: "accept edits",
  dontAsk: "don't ask",
  bypassPermissions: "bypass permissions",
};
/** How much the model may think: the hub's codes, in words. */
const THINKING: Record<string, string> = {
  auto: "Thinking: auto",
  off: "Thinking: off",
  4000: "Thinking: 4k",
  16000: "Thinking: 16k",
  32000: "Thinking: 32k",
};
const MODELS = ["opus", "sonnet", "haiku"];

/** Mode, model and thinking of a running session. */
export function Switches({ session }: { session: Session }) {
  const action = useAction();
  const mayManage = useAppState((state) => state.me?.rights.includes("manage") ?? false);
  if (!mayManage || session.run === null) return null;
  const control = (request: ControlRequest): void =>
    void action.run(() => store.control(session.session, request));
  const mode = session.mode ?? "default";
  const model = session.model ?? "";
  const thinking = session.thinking ?? "auto";
  const offered = (session.offers?.models ?? []).map((one) => one.model);
  return (
    <>
      <select
        aria-label="Mode"
        value={mode}
        onChange={(event) => control({ subtype: "set_permission_mode", mode: event.target.value })}
      >
        {[...new Set([mode, ...Object.keys(MODES)])].map((each) => (
          <option key={each} value={each}>
            {lookup(MODES, each) ?? each}
          </option>
        ))}
      </select>
      <select
        aria-label="Model"
        value={model}
        onChange={(event) => control({ subtype: "set_model", model: event.target.value })}
      >
        {[...new Set([model, ...MODELS, ...offered])].filter(Boolean).map((each) => (
          <option key={each} value={each}>
            {each.replace(/^claude-/, "")}
          </option>
        ))}
      </select>
      <select
        aria-label="Thinking"
        value={thinking}
        onChange={(event) =>
          control({
            subtype: "set_max_thinking_tokens",
            max_thinking_tokens: thinkingTokens(event.target.value),
          })
        }
      >
        {[...new Set([...Object.keys(THINKING), thinking])].map((each) => (
          <option key={each} value={each}>
            {lookup(THINKING, each) ?? `Thinking: ${each}`}
          </option>
        ))}
      </select>
      <ErrorText error={action.error} />
    </>
  );
}

/** The tokens of a code, as the CLI takes them: null leaves it to the model. */
function thinkingTokens(code: string): number | null {
  if (code === "auto") return null;
  return code === "off" ? 0 : Number(code);
}
