import { useContext, useState } from "react";
import { post } from "../api/http";
import type { Refusal } from "../state/entries";
import { lookup } from "../state/lookup";
import { useAppState, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Marked } from "../ui/Marked";
import { useAction } from "../ui/useAction";
import { OpenSession } from "./relativePath";
import styles from "./tool.module.css";

/** What the sandbox seems to have refused to a call, each with a rule that would allow it. */
export function SandboxRefusals({ refusals }: { refusals: readonly Refusal[] }) {
  return (
    <>
      {refusals.map((one) => (
        <RefusalLine key={`${one.access} ${one.target}`} refusal={one} />
      ))}
    </>
  );
}

function RefusalLine({ refusal }: { refusal: Refusal }) {
  const id = useContext(OpenSession);
  const spec = useAppState((state) => state.sessions.get(id)?.spec);
  const manage = useRights().includes("manage");
  const action = useAction();
  const [allowed, setAllowed] = useState(false);
  const allow = async (): Promise<void> => {
    const where = spec?.project ? { project: spec.project } : { directory: spec?.directory ?? "" };
    const grant = { rules: [refusal.rule], ...where };
    if (await action.run(() => post("/api/policy/grants", grant))) setAllowed(true);
  };
  return (
    <p className={styles.refusal}>
      {text.parts.refusal.refused(
        lookup(text.parts.refusal.verbs, refusal.access) ?? refusal.access,
      )}{" "}
      <code>
        <Marked text={refusal.target} code />
      </code>
      . {allowed && text.parts.refusal.allowed}
      {!allowed && manage && refusal.rule && spec && (
        <button
          type="button"
          className={css.button.small}
          disabled={action.busy}
          title={refusal.rule}
          onClick={() => void allow()}
        >
          {text.parts.refusal.allow}
        </button>
      )}
      <ErrorText error={action.error} />
    </p>
  );
}
