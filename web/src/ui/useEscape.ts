// Escape closes the menu, dialog or field that was opened last. Only when nothing is open does the page
// get the key, which may interrupt a turn.
import { useEffect, useRef } from "react";

const open: { close: () => void }[] = [];

function pressed(event: KeyboardEvent): void {
  const last = open.at(-1);
  if (event.key !== "Escape" || !last) return;
  // For an input method, Escape cancels the word that is being composed.
  if (event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  event.stopPropagation();
  if (!event.repeat) last.close();
}

/** While something is open, Escape closes it, and does nothing else. */
export function useEscape(isOpen: boolean, close: () => void): void {
  const latest = useRef(close);
  useEffect(() => {
    latest.current = close;
  });
  useEffect(() => {
    if (!isOpen) return;
    const one = { close: () => latest.current() };
    if (!open.length) document.addEventListener("keydown", pressed, true);
    open.push(one);
    return () => {
      open.splice(open.indexOf(one), 1);
      if (!open.length) document.removeEventListener("keydown", pressed, true);
    };
  }, [isOpen]);
}
