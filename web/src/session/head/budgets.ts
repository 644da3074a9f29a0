// How much of its budget a session has used. Pure.
import type { Session } from "../../api/types";

export type Budget = NonNullable<Session["spec"]["budget"]>;
export type BudgetName = "session_usd" | "session_tokens" | "run_usd" | "run_tokens";
export const BUDGET_NAMES: readonly BudgetName[] = [
  "session_usd",
  "session_tokens",
  "run_usd",
  "run_tokens",
];

/** What was spent of each kind. */
export function spentOf(session: Session): Record<BudgetName, number> {
  return {
    session_usd: session.cost_usd,
    session_tokens: session.tokens,
    run_usd: session.run_usd,
    run_tokens: session.run_tokens,
  };
}

export interface BudgetUse {
  name: BudgetName;
  spent: number;
  limit: number;
  /** Between 0 and 1. */
  share: number;
}

/** The limit that is nearest to being reached; undefined without a limit. */
export function tightest(session: Session): BudgetUse | undefined {
  const spent = spentOf(session);
  const uses = BUDGET_NAMES.flatMap((name): BudgetUse[] => {
    const limit = session.spec.budget?.[name];
    if (!limit) return [];
    return [{ name, spent: spent[name], limit, share: Math.min(1, spent[name] / limit) }];
  });
  return uses.sort((one, other) => other.share - one.share)[0];
}

/** The same budget with each reached limit at twice what was spent. */
export function doubled(session: Session): Budget {
  const budget = { ...(session.spec.budget ?? {}) };
  const spent = spentOf(session);
  for (const name of BUDGET_NAMES) {
    const limit = budget[name];
    if (limit && spent[name] >= limit) {
      const next = Math.max(limit, spent[name]) * 2;
      budget[name] = name.endsWith("_usd") ? Math.ceil(next * 100) / 100 : Math.ceil(next);
    }
  }
  return budget;
}

/** A budget from what a person typed; an empty field is no limit. Undefined if one is no number. */
export function budgetFrom(typed: Record<BudgetName, string>): Budget | undefined {
  const budget: Budget = {};
  for (const name of BUDGET_NAMES) {
    const given = typed[name].trim().replace(",", ".");
    if (!given) continue;
    const limit = Number(given);
    if (!Number.isFinite(limit) || limit <= 0) return undefined;
    budget[name] = name.endsWith("_usd") ? limit : Math.ceil(limit);
  }
  return budget;
}
