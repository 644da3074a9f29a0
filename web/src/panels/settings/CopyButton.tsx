import { text } from "../../text";
import { useCopy } from "../../ui/useCopy";

/** Copies a text, which is also there to be selected. */
export function CopyButton({ of, label }: { of: string; label: string }) {
  const [copied, copy] = useCopy();
  return (
    <button type="button" onClick={() => copy(of)}>
      {copied ? text.settings.copied : label}
    </button>
  );
}
