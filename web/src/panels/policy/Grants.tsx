import { Lightbulb } from "lucide-react";
import { useCallback } from "react";
import { get, remove } from "../../api/http";
import type { components } from "../../api/schema";
import { useRights } from "../../state/store";
import { text as catalogue } from "../../text";
import { css } from "../../ui/css";
import { Empty } from "../../ui/Empty";
import { ErrorText } from "../../ui/ErrorText";
import { moment } from "../../ui/format";
import { Marked } from "../../ui/Marked";
import { ACTIONS, RevokeButton, Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import { useQuery } from "../../ui/useQuery";

type Grant = components["schemas"]["Grant"];
type Suggestion = components["schemas"]["Suggestion"];

const words = catalogue.policy.grants;

/** What people have allowed until they revoke it. */
export function Grants(props: {
  grants: readonly Grant[];
  flaw: string | null;
  reload: () => void;
}) {
  const manage = useRights().includes("manage");
  const action = useAction();
  const revoke = async (grant: Grant): Promise<void> => {
    const path = `/api/policy/grants/${encodeURIComponent(grant.id)}`;
    if (await action.run(() => remove(path))) props.reload();
  };
  return (
    <section className={css.card.card} aria-label={words.title}>
      <h2>{words.title}</h2>
      <ErrorText error={props.flaw || action.error} />
      {!props.grants.length && <p className={css.texts.muted}>{words.none}</p>}
      {props.grants.length > 0 && (
        <Table heads={[...Object.values(words.heads), ACTIONS]}>
          {props.grants.map((grant) => (
            <tr key={grant.id}>
              <td>
                {grant.rules.map((rule) => (
                  <p key={rule}>
                    <code>
                      <Marked text={rule} code />
                    </code>
                  </p>
                ))}
              </td>
              <td>{whereOf(grant)}</td>
              <td>{words.by(grant.by, moment(grant.at))}</td>
              <td>{grant.until ? moment(grant.until) : words.never}</td>
              <td>
                {manage && (
                  <RevokeButton what={grant.rules.join(", ")} onClick={() => void revoke(grant)} />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function whereOf(grant: Grant): string {
  if (grant.session) return words.inSession(grant.session);
  return grant.project ?? grant.directory ?? words.everywhere;
}

/** Rules that the answers of people support. */
export function Suggestions() {
  const found = useQuery(
    useCallback(() => get<{ suggestions: Suggestion[] }>("/api/policy/suggestions"), []),
  );
  const suggestions = found.value?.suggestions ?? [];
  return (
    <>
      <ErrorText error={found.error} />
      {suggestions.map((one) => (
        <section key={one.toml} className={css.card.card}>
          <p>{one.means}</p>
          <pre className={css.card.raw}>{one.toml}</pre>
          <p className={css.texts.muted}>
            {catalogue.policy.suggestions.history(
              one.allowed,
              one.denied,
              one.people.join(", "),
              moment(one.first),
              moment(one.last),
            )}
          </p>
          <p className={css.texts.muted}>
            {catalogue.policy.suggestions.examples(one.examples.join(" · "))}
          </p>
          {one.admits.length > 0 && (
            <p className={css.texts.muted}>
              {catalogue.policy.suggestions.admits(one.admits.join(" · "))}
            </p>
          )}
        </section>
      ))}
      {!suggestions.length && !found.loading && !found.error && (
        <Empty icon={Lightbulb} title={catalogue.policy.suggestions.none}>
          {catalogue.policy.suggestions.noneHint}
        </Empty>
      )}
    </>
  );
}
