import { useSyncExternalStore } from "react";
import { dismiss, getFaults, subscribeFaults } from "./faults";

/** What has failed and nobody has told otherwise. */
export function Faults() {
  const faults = useSyncExternalStore(subscribeFaults, getFaults);
  return (
    <div className="faults" role="alert">
      {faults.map(({ text, count }) => (
        <p key={text}>
          <span>
            {text}
            {count > 1 && ` (${count} times)`}
          </span>
          <button type="button" className="small" onClick={() => dismiss(text)}>
            Dismiss
          </button>
        </p>
      ))}
    </div>
  );
}
