import type { ReactNode } from "react";

/** A table that scrolls by itself where it is too wide for the page. */
export function Table({ heads, children }: { heads: readonly string[]; children: ReactNode }) {
  return (
    <div className="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head}>
                {head === BACK ? <span className="visually-hidden">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** The head of the column in which each row can be taken back. */
export const BACK = "take back";

export function TakeBack({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <button
      type="button"
      className="small danger"
      aria-label={`Take back ${what}`}
      onClick={onClick}
    >
      Take back
    </button>
  );
}
