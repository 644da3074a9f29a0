// Prompts on their way to the hub. Each is stored in the browser until the hub acknowledges it; the
// prompt's id makes sending idempotent.
import { ApiError, errorText } from "../api/http";
import type { Stream } from "../api/stream";
import type { AppState } from "./appState";
import { removeUnsent, saveUnsent, type UnsentPrompt } from "./drafts";
import type { Slice } from "./observable";

export class PromptOutbox {
  private readonly inFlight = new Set<string>();

  constructor(
    private readonly state: Slice<Pick<AppState, "unsent">>,
    private readonly stream: Stream,
  ) {}

  /** Send a prompt; with `steer` into the running turn. */
  async send(session: string, id: string, content: unknown, steer = false): Promise<void> {
    if (this.inFlight.has(id)) return; // the stream retries it after a reconnect
    this.inFlight.add(id);
    const prompt: UnsentPrompt = { session, id, content, ...(steer ? { steer } : {}) };
    this.save(prompt);
    try {
      await this.stream.command(
        { command: "prompt.send", session, prompt: id, content, ...(steer ? { steer } : {}) },
        id,
      );
      this.remove(id);
    } catch (error) {
      if (error instanceof ApiError && error.code === "withdrawn") return;
      this.save({ ...prompt, error: errorText(error) });
    } finally {
      this.inFlight.delete(id);
    }
  }

  /** Do not send it. */
  discard(id: string): void {
    this.stream.withdraw(id);
    this.remove(id);
  }

  /** Send what an earlier page or connection has left. What the hub refused waits for a person. */
  resend(): void {
    for (const { session, id, content, steer, error } of Object.values(this.state.get().unsent)) {
      if (!error) void this.send(session, id, content, steer);
    }
  }

  private save(prompt: UnsentPrompt): void {
    this.state.set({ unsent: saveUnsent(this.state.get().unsent, prompt) });
  }

  private remove(id: string): void {
    this.state.set({ unsent: removeUnsent(this.state.get().unsent, id) });
  }
}
