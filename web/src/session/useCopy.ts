import { useState } from "react";

/** Copies a text, and says for a moment that it did. Over plain http there is no clipboard API. */
export function useCopy(): [copied: boolean, copy: (text: string) => void] {
  const [copied, setCopied] = useState(false);
  const copy = (text: string): void => {
    void write(text).then((done) => {
      setCopied(done);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return [copied, copy];
}

async function write(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // The browser refuses it to this page: the old way is tried.
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
