import { type FormEvent, useState } from "react";
import { post } from "../../api/http";
import type { components } from "../../api/schema";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { text as catalogue } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { Marked } from "../../ui/Marked";
import { Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import styles from "./policy.module.css";
import { Verdict } from "./Verdict";

type Explanation = components["schemas"]["Explanation"];

const words = catalogue.policy.explain;

/** How a call would be decided, and by which rule. */
export function Explain({ names }: { names: readonly string[] }) {
  const sessions = useAppState((state) => state.sessions);
  const [found, setFound] = useState<Explanation>();
  const action = useAction();
  const explain = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].filter(([, value]) => value !== "");
    void action.run(async () => {
      setFound(undefined);
      setFound(await post<Explanation>("/api/policy/explain", Object.fromEntries(given)));
    });
  };
  return (
    <>
      <form className={css.card.card} onSubmit={explain}>
        <div className={css.layout.columns}>
          <label className={css.field.field}>
            <span>{words.tool}</span>
            <input name="tool" required defaultValue="Bash" />
          </label>
          <label className={css.field.field}>
            <span>{words.session}</span>
            <select name="session" defaultValue="">
              <option value="">{words.noSession}</option>
              {[...sessions.values()].map((session) => (
                <option key={session.session} value={session.session}>
                  {nameOf(session)}
                </option>
              ))}
            </select>
          </label>
          <label className={css.field.field}>
            <span>{words.policy}</span>
            <select name="policy" defaultValue="">
              <option value="">{words.inForce}</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </div>
        <label className={css.field.field}>
          <span>{words.argument}</span>
          <textarea
            name="argument"
            rows={3}
            className={css.texts.mono}
            placeholder={words.example}
          />
        </label>
        <div className={css.layout.buttons}>
          <button type="submit" className={css.button.primary} disabled={action.busy}>
            {words.explain}
          </button>
        </div>
      </form>
      <ErrorText error={action.error} />
      {found && <Explained found={found} />}
    </>
  );
}

function Explained({ found }: { found: Explanation }) {
  return (
    <section className={css.card.card} aria-label={words.explanation}>
      <div className={css.layout.buttons}>
        <Verdict word={found.verdict} />
        {found.rule && (
          <span>
            {words.by(found.rule)} <span className={css.texts.muted}>{found.source}</span>
          </span>
        )}
      </div>
      {found.message && <p>{found.message}</p>}
      <ul className={styles.reasons}>
        {found.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      {found.rewritten && <pre className={css.card.raw}>{found.rewritten}</pre>}
      <Table heads={Object.values(words.heads)}>
        {found.parts.map((part, index) => (
          <tr key={index}>
            <td>
              <span className={css.texts.muted}>{part.kind}</span> <code>{part.what}</code>
              {part.why && <p className={css.texts.muted}>{part.why}</p>}
            </td>
            <td>
              {part.free && <span className={css.texts.muted}>{words.always}</span>}
              {part.rules?.map((rule, at) => (
                <p key={at}>
                  <Verdict word={rule.verdict} /> {rule.rule}{" "}
                  <span className={css.texts.muted}>
                    {rule.source}
                    {rule.sure === false && ` ${words.may}`}
                  </span>
                </p>
              ))}
              {!part.free && !part.rules?.length && (
                <span className={css.texts.muted}>{words.noRules}</span>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {!!found.unknown?.length && (
        <>
          <h2>{words.unknown}</h2>
          <ul className={styles.reasons}>
            {found.unknown.map((one, index) => (
              <li key={index}>
                <code>
                  <Marked text={one.what} code />
                </code>
                {one.start != null && (
                  <span className={css.texts.muted}> {words.atCharacter(one.start + 1)}</span>
                )}
                : {one.why}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
