import type { ReactNode } from "react";
import { text } from "../text";

/** A table that scrolls sideways when it is too wide for the page. */
export function Table({ heads, children }: { heads: readonly string[]; children: ReactNode }) {
  return (
    <div className="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head}>
                {head === ACTIONS ? <span className="visually-hidden">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** The head of the column with each row's buttons; only screen readers hear it. */
export const ACTIONS = text.app.actions;

export function RevokeButton({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <button
      type="button"
      className="small danger"
      aria-label={text.app.revokeWhat(what)}
      onClick={onClick}
    >
      {text.app.revoke}
    </button>
  );
}
