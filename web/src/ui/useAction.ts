import { useCallback, useState } from "react";
import { errorText } from "../api/http";

export interface Action {
  /** Run an action; gives whether it succeeded. */
  run: (action: () => Promise<unknown>) => Promise<boolean>;
  busy: boolean;
  /** Why the last action failed; empty if it succeeded. */
  error: string;
}

/** The one way to run what a person started: whether it is running, and why it failed. */
export function useAction(): Action {
  const [running, setRunning] = useState(0);
  const [error, setError] = useState("");
  const run = useCallback(async (action: () => Promise<unknown>): Promise<boolean> => {
    setError("");
    setRunning((count) => count + 1);
    try {
      await action();
      return true;
    } catch (failure) {
      setError(errorText(failure));
      return false;
    } finally {
      setRunning((count) => count - 1);
    }
  }, []);
  return { run, busy: running > 0, error };
}
