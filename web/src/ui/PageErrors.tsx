import { useSyncExternalStore } from "react";
import { dismiss, getPageErrors, subscribePageErrors } from "./pageErrors";

/** Errors that no component has shown. */
export function PageErrors() {
  const errors = useSyncExternalStore(subscribePageErrors, getPageErrors);
  return (
    <div className="page-errors" role="alert">
      {errors.map(({ text, count }) => (
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
