import { useCallback, useState } from "react";
import { wordsOf } from "../api/http";

/** Has something done, and why the last thing was not; empty if it was. */
export function useDoing(): [(does: () => Promise<unknown>) => Promise<boolean>, string] {
  const [error, setError] = useState("");
  const doing = useCallback(async (does: () => Promise<unknown>): Promise<boolean> => {
    setError("");
    try {
      await does();
      return true;
    } catch (failure) {
      setError(wordsOf(failure));
      return false;
    }
  }, []);
  return [doing, error];
}
