import type { components } from "../../api/schema";
import { text } from "../../text";
import { css } from "../../ui/css";

type Flaw = components["schemas"]["Flaw"];

/** Rules of a policy that never do what they say. The policy is valid. */
export function Warnings({ warnings }: { warnings: readonly Flaw[] | undefined }) {
  return warnings?.map((one) => (
    <p key={`${one.line}:${one.text}`} className={css.note.note} data-tone="warn">
      {text.policy.warning(one.line, one.text)}
    </p>
  ));
}
