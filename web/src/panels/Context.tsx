import { useCallback } from "react";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { tokens } from "../ui/format";
import { useQuery } from "../ui/useQuery";
import styles from "./context.module.css";
import type { PanelProps } from "./Panel";

interface Category {
  name: string;
  tokens: number;
  kind?: string;
}
interface ContextUsage {
  categories?: Category[];
  totalTokens?: number;
  maxTokens?: number;
  percentage?: number;
  model?: string;
}

/** What fills the model's context, as a picture. */
export function Context({ session }: PanelProps) {
  const id = session.session;
  const usage = useQuery(
    useCallback(() => store.control<ContextUsage>(id, { subtype: "get_context_usage" }), [id]),
  );
  const value = usage.value;
  const parts = (value?.categories ?? []).filter((one) => one.tokens > 0);
  const most = Math.max(1, value?.maxTokens ?? 1);
  return (
    <>
      <div className={css.layout.buttons}>
        <h2>{text.session.context.title}</h2>
        <span className={css.layout.spread} />
        <button
          type="button"
          className={css.button.small}
          onClick={usage.reload}
          disabled={usage.loading}
        >
          {text.session.context.refresh}
        </button>
      </div>
      <ErrorText error={usage.error} />
      {value && (
        <>
          <p>
            {text.session.context.sum(tokens(value.totalTokens ?? 0), tokens(value.maxTokens ?? 0))}
            {value.percentage !== undefined && ` · ${Math.round(value.percentage)} %`}
          </p>
          <div className={styles.stack} role="img" aria-label={text.session.context.picture}>
            {parts
              .filter((one) => one.kind !== "deferred")
              .map((one, index) => (
                <span
                  key={one.name}
                  data-kind={one.kind}
                  data-hue={index % 6}
                  title={`${one.name}: ${tokens(one.tokens)}`}
                  style={{ flexGrow: one.tokens / most }}
                />
              ))}
          </div>
          <table>
            <tbody>
              {parts.map((one, index) => (
                <tr key={one.name}>
                  <td>
                    <span
                      className={styles.swatch}
                      data-kind={one.kind}
                      data-hue={index % 6}
                      aria-hidden="true"
                    />{" "}
                    {one.name}
                  </td>
                  <td className={css.texts.number}>{tokens(one.tokens)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </>
  );
}
