import type { ReactNode } from "react";
import { text } from "../text";
import { css } from "./css";

/** A table that scrolls sideways when it is too wide for the page. */
export function Table({ heads, children }: { heads: readonly string[]; children: ReactNode }) {
  return (
    <div className={css.table.wrap} data-scrolls="" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head}>
                {head === ACTIONS ? <span className={css.texts.visuallyHidden}>{head}</span> : head}
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
      className={`${css.button.small} ${css.button.danger}`}
      aria-label={text.app.revokeWhat(what)}
      onClick={onClick}
    >
      {text.app.revoke}
    </button>
  );
}
