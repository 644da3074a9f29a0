import { useCallback } from "react";
import { get, remove } from "../../api/http";
import type { components } from "../../api/schema";
import { useRights } from "../../state/store";
import { ErrorText } from "../../ui/ErrorText";
import { moment, plural } from "../../ui/format";
import { Marked } from "../../ui/Marked";
import { ACTIONS, RevokeButton, Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import { useQuery } from "../../ui/useQuery";

type Grant = components["schemas"]["Grant"];
type Suggestion = components["schemas"]["Suggestion"];

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
    <section className="card" aria-label="Grants">
      <h2>Grants</h2>
      <ErrorText error={props.flaw || action.error} />
      {!props.grants.length && (
        <p className="muted">No grants yet. “Always allow” on a question adds one.</p>
      )}
      {props.grants.length > 0 && (
        <Table heads={["rules", "where", "granted by", "expires", ACTIONS]}>
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
              <td>
                {grant.by}, {moment(grant.at)}
              </td>
              <td>{grant.until ? moment(grant.until) : "never"}</td>
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
  if (grant.session) return `session ${grant.session}`;
  return grant.project ?? grant.directory ?? "everywhere";
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
        <section key={one.toml} className="card">
          <p>{one.means}</p>
          <pre className="raw">{one.toml}</pre>
          <p className="muted">
            {plural(one.allowed, "time")} allowed, {plural(one.denied, "time")} denied, by{" "}
            {one.people.join(", ")}; from {moment(one.first)} to {moment(one.last)}
          </p>
          <p className="muted">Examples: {one.examples.join(" · ")}</p>
          {one.admits.length > 0 && (
            <p className="muted">It would also allow: {one.admits.join(" · ")}</p>
          )}
        </section>
      ))}
      {!suggestions.length && !found.loading && !found.error && (
        <p className="muted">
          No suggestions from the last 30 days. Calls that people often answer in the same way
          appear here.
        </p>
      )}
    </>
  );
}
