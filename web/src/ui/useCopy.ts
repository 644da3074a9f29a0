import { useEffect, useRef, useState } from "react";

/** How long a button says that it has copied. */
const SHOWN = 1500;

/** Copies a text, and says for a moment that it did. */
export function useCopy(): [copied: boolean, copy: (text: string) => void] {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = (text: string): void => {
    void copyText(text).then((done) => {
      setCopied(done);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => setCopied(false), SHOWN);
    });
  };
  return [copied, copy];
}

/** Whether a text is in the clipboard now. A page over plain http has no clipboard API: the old way is left. */
export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // The browser refuses it to this page: the old way is tried.
  }
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true; // no keyboard opens on a phone
  field.style.position = "fixed";
  field.style.opacity = "0";
  // Beside what has the focus: a dialog gives it to nothing outside.
  (focused?.parentElement ?? document.body).append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    // Then the person selects it.
  }
  field.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return done;
}
