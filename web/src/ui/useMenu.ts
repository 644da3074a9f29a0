import { type RefObject, type ToggleEvent, useCallback, useEffect, useRef, useState } from "react";
import { useEscape } from "./useEscape";

interface MenuState {
  place: RefObject<HTMLDetailsElement | null>;
  toggled: (event: ToggleEvent<HTMLDetailsElement>) => void;
  close: () => void;
}

/** A menu in a `<details>`: Escape and a click outside close it. */
export function useMenu(): MenuState {
  const place = useRef<HTMLDetailsElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = useCallback(() => {
    if (place.current) place.current.open = false;
    setOpen(false);
  }, []);
  useEscape(isOpen, () => {
    close();
    place.current?.querySelector("summary")?.focus();
  });
  useEffect(() => {
    if (!isOpen) return;
    const clicked = (event: Event): void => {
      if (!(event.target instanceof Node && place.current?.contains(event.target))) close();
    };
    document.addEventListener("pointerdown", clicked, true);
    return () => document.removeEventListener("pointerdown", clicked, true);
  }, [isOpen, close]);
  return { place, toggled: (event) => setOpen(event.currentTarget.open), close };
}
