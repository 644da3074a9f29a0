import { useCallback, useEffect, useState } from "react";
import { wordsOf } from "../api/http";

export interface Answered<T> {
  value: T | undefined;
  error: string;
  loading: boolean;
  again: () => void;
}

/** What the hub answers to a question, asked when the page is opened and when `ask` changes. */
export function useHub<T>(ask: () => Promise<T>): Answered<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState("");
  const [loading, setLoading] = useState(true);
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another round asks again
  useEffect(() => {
    let wanted = true;
    setLoading(true);
    ask()
      .then((found) => {
        if (!wanted) return;
        setValue(found);
        setError("");
      })
      .catch((failure: unknown) => {
        if (wanted) setError(wordsOf(failure));
      })
      .finally(() => {
        if (wanted) setLoading(false);
      });
    return () => {
      wanted = false;
    };
  }, [ask, round]);
  return { value, error, loading, again: useCallback(() => setRound((before) => before + 1), []) };
}
