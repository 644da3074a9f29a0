import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import type { Spec } from "../api/types";
import { Pictures, usePictures } from "../session/pictures";
import { folderOf } from "../state/fleet";
import { store, useDeck } from "../state/store";
import { newId } from "../ui/format";
import { Modal } from "../ui/Modal";

const MODES = ["default", "plan", "acceptEdits", "dontAsk"];
const EFFORTS = ["low", "medium", "high"];

/** The dialog that begins a session. */
export function NewSession({ onClose }: { onClose: () => void }) {
  const fleet = useDeck((deck) => deck.fleet);
  const recent = [...new Set([...fleet.values()].map((session) => folderOf(session)))].slice(0, 20);
  const [, go] = useLocation();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const pictures = usePictures();
  const begin = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string): string => String(form.get(name) ?? "").trim();
    const spec: Partial<Spec> = { directory: given("directory") };
    for (const name of ["name", "model", "mode", "effort", "worktree", "policy"] as const) {
      if (given(name)) spec[name] = given(name);
    }
    if (given("budget")) spec.budget = { session_usd: Number(given("budget")) };
    const session = newId();
    setBusy(true);
    try {
      const prompt = pictures.content(given("prompt"));
      await store.command("session.create", {
        spec,
        session,
        ...(prompt ? { prompt, prompt_id: newId() } : {}),
      });
      go(`/s/${session}`);
      onClose();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  };
  return (
    <Modal title="New session" onClose={onClose}>
      <form
        className="new-session"
        onSubmit={(event) => void begin(event)}
        onPaste={pictures.onPaste}
      >
        <label className="field">
          <span>Directory</span>
          <input
            name="directory"
            list="recent"
            required
            placeholder="/home/you/project"
            defaultValue={recent[0] ?? ""}
          />
        </label>
        <datalist id="recent">
          {recent.map((folder) => (
            <option key={folder} value={folder} />
          ))}
        </datalist>
        <label className="field">
          <span>First prompt</span>
          <textarea name="prompt" rows={4} placeholder="What is to be done?" />
        </label>
        <Pictures pictures={pictures} />
        <div className="columns">
          <label className="field">
            <span>Name</span>
            <input name="name" />
          </label>
          <label className="field">
            <span>Worktree branch</span>
            <input name="worktree" placeholder="none" />
          </label>
          <label className="field">
            <span>Model</span>
            <input name="model" placeholder="as the CLI has it" list="models" />
          </label>
          <label className="field">
            <span>Mode</span>
            <select name="mode" defaultValue="">
              <option value="">as the CLI has it</option>
              {MODES.map((mode) => (
                <option key={mode}>{mode}</option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>Effort</span>
            <select name="effort" defaultValue="">
              <option value="">as the CLI has it</option>
              {EFFORTS.map((effort) => (
                <option key={effort}>{effort}</option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>Budget in dollars</span>
            <input name="budget" type="number" min="0.01" step="0.01" placeholder="none" />
          </label>
          <label className="field">
            <span>Policy</span>
            <select name="policy" defaultValue="">
              <option value="">the hub's own</option>
              {["read-only", "careful", "edit-freely", "trusted-repo"].map((preset) => (
                <option key={preset}>{preset}</option>
              ))}
            </select>
          </label>
        </div>
        <datalist id="models">
          {["opus", "sonnet", "haiku"].map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        {error && (
          <p className="error" role="alert">
            {error}
          </p>
        )}
        <div className="buttons">
          <button type="submit" className="primary" disabled={busy}>
            Begin
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  );
}
