import { type FormEvent, useContext, useState } from "react";
import type { Session } from "../../api/types";
import { store, useAppState, useRights } from "../../state/store";
import { text } from "../../text";
import { css } from "../../ui/css";
import { Dialog } from "../../ui/Dialog";
import { ErrorText } from "../../ui/ErrorText";
import { cost, tokens } from "../../ui/format";
import { useAction } from "../../ui/useAction";
import { OpenSession } from "../relativePath";
import {
  BUDGET_NAMES,
  type Budget,
  type BudgetName,
  budgetFrom,
  doubled,
  spentOf,
  tightest,
} from "./budgets";
import styles from "./head.module.css";

const LABELS: Record<BudgetName, string> = {
  session_usd: text.session.budget.sessionUsd,
  session_tokens: text.session.budget.sessionTokens,
  run_usd: text.session.budget.runUsd,
  run_tokens: text.session.budget.runTokens,
};

const amount = (name: BudgetName, value: number): string =>
  name.endsWith("_usd") ? cost(value) : tokens(value);

/** "$0.40 of $1", or what was spent without a limit. */
export function budgetText(session: Session): string {
  const use = tightest(session);
  if (!use) return cost(session.cost_usd);
  return `${amount(use.name, use.spent)} / ${amount(use.name, use.limit)}`;
}

/** The limits of a session, to be changed. */
export function BudgetForm({ session, onDone }: { session: Session; onDone: () => void }) {
  const manage = useRights().includes("manage");
  const action = useAction();
  const spent = spentOf(session);
  const [wrong, setWrong] = useState(false);
  const change = async (budget: Budget): Promise<void> => {
    const done = await action.run(() =>
      store.command({ command: "session.change", session: session.session, budget }),
    );
    if (done) onDone();
  };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const typed = Object.fromEntries(
      BUDGET_NAMES.map((name) => [name, String(data.get(name) ?? "")]),
    ) as Record<BudgetName, string>;
    const budget = budgetFrom(typed);
    setWrong(!budget);
    if (budget) void change(budget);
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <p className={css.texts.muted}>
        {text.session.budget.spent(cost(session.cost_usd), tokens(session.tokens))}
      </p>
      {BUDGET_NAMES.map((name) => {
        const limit = session.spec.budget?.[name];
        return (
          <label key={name} className={css.field.field}>
            <span>
              {LABELS[name]}
              {limit && spent[name] >= limit ? ` (${text.session.budget.reached})` : ""}
            </span>
            <input
              name={name}
              inputMode="decimal"
              defaultValue={limit ?? ""}
              placeholder={text.session.budget.noLimit}
              disabled={!manage}
              aria-invalid={wrong || undefined}
            />
          </label>
        );
      })}
      {!manage && <p className={css.texts.muted}>{text.session.head.noRight}</p>}
      {manage && (
        <div className={css.layout.buttons}>
          <button type="submit" className={css.button.primary} disabled={action.busy}>
            {text.session.budget.save}
          </button>
          {session.budgets.length > 0 && (
            <button
              type="button"
              disabled={action.busy}
              onClick={() => void change(doubled(session))}
            >
              {text.session.budget.double}
            </button>
          )}
        </div>
      )}
      <ErrorText error={action.error} />
    </form>
  );
}

/** Raises the budget of the session that is open, from the note that says it was reached. */
export function BudgetButton() {
  const id = useContext(OpenSession);
  const session = useAppState((state) => state.sessions.get(id));
  const manage = useRights().includes("manage");
  const [open, setOpen] = useState(false);
  if (!session?.budgets.length || !manage) return null;
  return (
    <>
      {" "}
      <button type="button" className={css.button.small} onClick={() => setOpen(true)}>
        {text.story.raiseBudget}
      </button>
      {open && (
        <Dialog title={text.session.budget.title} size="s" onClose={() => setOpen(false)}>
          <BudgetForm session={session} onDone={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}
