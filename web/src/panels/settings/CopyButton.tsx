import { useState } from "react";
import { text } from "../../text";

/** Copies a text. A page over plain http has no clipboard: then the text is there to be selected. */
export function CopyButton({ of, label }: { of: string; label: string }) {
  const [copied, setCopied] = useState(false);
  if (!navigator.clipboard) return null;
  return (
    <button
      type="button"
      onClick={() =>
        void navigator.clipboard.writeText(of).then(
          () => setCopied(true),
          () => undefined,
        )
      }
    >
      {copied ? text.settings.copied : label}
    </button>
  );
}
