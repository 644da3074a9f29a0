import { useCallback } from "react";
import { get, remove } from "../../api/http";
import type { components } from "../../api/schema";
import { useRights } from "../../state/store";
import { moment, plural } from "../../ui/format";
import { Marked } from "../../ui/Marked";
import { BACK, Table, TakeBack } from "../../ui/Table";
import { useDoing } from "../../ui/useDoing";
import { useHub } from "../../ui/useHub";

type Grant = components["schemas"]["Grant"];
type Suggestion = components["schemas"]["Suggestion"];

/** What people have allowed for good, with a way to take it back. */
export function Grants(props: {
  grants: readonly Grant[];
  flaw: string | null;
  again: () => void;
}) {
  const manage = useRights().includes("manage");
  const [doing, error] = useDoing();
  const revoke = async (grant: Grant): Promise<void> => {
    const path = `/api/policy/grants/${encodeURIComponent(grant.id)}`;
    if (await doing(() => remove(path))) props.again();
  };
  return (
    <section className="card" aria-label="Grants">
      <h2>Granted by people</h2>
      {(props.flaw || error) && (
        <p className="error" role="alert">
          {props.flaw || error}
        </p>
      )}
      {!props.grants.length && (
        <p className="why">Nothing yet. «Always» in a question makes an entry here.</p>
      )}
      {props.grants.length > 0 && (
        <Table heads={["rules", "where", "by", "until", BACK]}>
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
              <td>{grant.project ?? grant.directory ?? "everywhere"}</td>
              <td>
                {grant.by}, {moment(grant.at)}
              </td>
              <td>{grant.until ? moment(grant.until) : "you take it back"}</td>
              <td>
                {manage && (
                  <TakeBack what={grant.rules.join(", ")} onClick={() => void revoke(grant)} />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

/** Rules that people's answers support. */
export function Suggestions() {
  const found = useHub(
    useCallback(() => get<{ suggestions: Suggestion[] }>("/api/policy/suggestions"), []),
  );
  const suggestions = found.value?.suggestions ?? [];
  return (
    <>
      {found.error && (
        <p className="error" role="alert">
          {found.error}
        </p>
      )}
      {suggestions.map((one) => (
        <section key={one.toml} className="card">
          <p>{one.means}</p>
          <pre className="raw">{one.toml}</pre>
          <p className="why">
            {plural(one.allowed, "time")} allowed, {plural(one.denied, "time")} denied, by{" "}
            {one.people.join(", ")}; from {moment(one.first)} to {moment(one.last)}
          </p>
          <p className="why">Such as: {one.examples.join(" · ")}</p>
          {one.admits.length > 0 && (
            <p className="why">It would also let pass: {one.admits.join(" · ")}</p>
          )}
        </section>
      ))}
      {!suggestions.length && !found.loading && !found.error && (
        <p className="why">
          No rule is supported by the answers of the last 30 days. Answer as you do; what is often
          answered alike comes up here.
        </p>
      )}
    </>
  );
}
