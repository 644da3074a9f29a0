import { useCallback, useState } from "react";

const PINS = "quarterdeck.pins";

function read(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(PINS) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

/** The sessions that this browser keeps at the top, and the way to pin or unpin one. */
export function usePins(): [ReadonlySet<string>, (session: string) => void] {
  const [pins, setPins] = useState(read);
  const toggle = useCallback((session: string) => {
    setPins((before) => {
      const next = new Set(before);
      if (!next.delete(session)) next.add(session);
      localStorage.setItem(PINS, JSON.stringify([...next]));
      return next;
    });
  }, []);
  return [pins, toggle];
}
