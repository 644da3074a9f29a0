import { useCallback, useEffect, useState } from "react";
import { errorText } from "../api/http";

export interface Query<T> {
  value: T | undefined;
  error: string;
  loading: boolean;
  reload: () => void;
}

/** What the hub answers to `ask`: read when the component is shown, and when `ask` changes. */
export function useQuery<T>(ask: () => Promise<T>): Query<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState("");
  const [loading, setLoading] = useState(true);
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another round asks again
  useEffect(() => {
    let current = true;
    setLoading(true);
    ask()
      .then((found) => {
        if (!current) return;
        setValue(found);
        setError("");
      })
      .catch((failure: unknown) => {
        if (current) setError(errorText(failure));
      })
      .finally(() => {
        if (current) setLoading(false);
      });
    return () => {
      current = false;
    };
  }, [ask, round]);
  return { value, error, loading, reload: useCallback(() => setRound((before) => before + 1), []) };
}
