import type { Session } from "../api/types";
import { store, useDeck } from "../state/store";
import type { Story } from "../state/story";
import { useDoing } from "../ui/useDoing";

const MODES = ["default", "plan", "acceptEdits", "dontAsk", "bypassPermissions"];
const THINKING: [string, number | null][] = [
  ["thinks freely", null],
  ["no thinking", 0],
  ["thinks, 4k", 4000],
  ["thinks, 16k", 16_000],
  ["thinks, 32k", 32_000],
];

/** Model, mode and thinking of a session that runs. */
export function Switches({ session, story }: { session: Session; story: Story }) {
  const [doing, error] = useDoing();
  const mayManage = useDeck((deck) => deck.me?.rights.includes("manage") ?? false);
  if (!mayManage || session.run === null) return null;
  const control = (request: Record<string, unknown>): Promise<boolean> =>
    doing(() => store.command("session.control", { session: session.session, request }));
  const mode = session.mode ?? (story.mode || "default");
  return (
    <>
      <select
        aria-label="Mode"
        value={mode}
        onChange={(event) =>
          void control({ subtype: "set_permission_mode", mode: event.target.value })
        }
      >
        {[...new Set([mode, ...MODES])].map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <select
        aria-label="Model"
        value={story.model}
        onChange={(event) => void control({ subtype: "set_model", model: event.target.value })}
      >
        {[...new Set([story.model, "opus", "sonnet", "haiku", ...story.models])]
          .filter(Boolean)
          .map((model) => (
            <option key={model} value={model}>
              {model.replace(/^claude-/, "")}
            </option>
          ))}
      </select>
      <select
        aria-label="Thinking"
        defaultValue=""
        onChange={(event) =>
          void control({
            subtype: "set_max_thinking_tokens",
            max_thinking_tokens: event.target.value === "" ? null : Number(event.target.value),
          })
        }
      >
        {THINKING.map(([word, tokens]) => (
          <option key={word} value={tokens ?? ""}>
            {word}
          </option>
        ))}
      </select>
      {error && <span className="error">{error}</span>}
    </>
  );
}
