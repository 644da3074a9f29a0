import { useCallback, useState } from "react";
import { Link } from "wouter";
import { get, post, remove } from "../../api/http";
import type { components } from "../../api/schema";
import { nameOf } from "../../state/sessions";
import { useAppState } from "../../state/store";
import { text } from "../../text";
import { Confirm } from "../../ui/Confirm";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { day, moment } from "../../ui/format";
import { ACTIONS, RevokeButton, Table } from "../../ui/Table";
import { useAction } from "../../ui/useAction";
import { useQuery } from "../../ui/useQuery";

type Schemas = components["schemas"];
type Grant = Schemas["GrantShape"];

const words = text.settings;
const ROLES = ["owner", "operator", "viewer", "program"];

/** Who has access, and how to grant or revoke it. */
export function Tokens() {
  const found = useQuery(useCallback(() => get<Schemas["GrantList"]>("/api/tokens"), []));
  const [created, setCreated] = useState("");
  const [revoking, setRevoking] = useState<Grant>();
  const action = useAction();
  const change = async (make: () => Promise<{ token?: string } | undefined>): Promise<void> => {
    if (await action.run(async () => setCreated((await make())?.token ?? ""))) found.reload();
  };
  const grants = (found.value?.tokens ?? []).filter((one) => one.kind !== "share");
  return (
    <section className={css.card.card}>
      <h2>{words.access}</h2>
      <ErrorText error={found.error || action.error} />
      <Table heads={[...Object.values(words.heads), ACTIONS]}>
        {grants.map((grant) => (
          <tr key={grant.id}>
            <td>{grant.name}</td>
            <td>{grant.role}</td>
            <td>{grant.own ? words.thisBrowser : grant.label || grant.kind}</td>
            <td title={grant.expires ? moment(grant.expires * 1000) : undefined}>
              {grant.expires ? day(grant.expires * 1000) : words.never}
            </td>
            <td>
              {!grant.own && (
                <RevokeButton
                  what={words.accessOf(grant.name)}
                  onClick={() => setRevoking(grant)}
                />
              )}
            </td>
          </tr>
        ))}
      </Table>
      {/* Not before the list, which would push it away from under the pointer. */}
      {found.value && (
        <form
          className={css.layout.buttons}
          onSubmit={(event) => {
            event.preventDefault();
            const form = new FormData(event.currentTarget);
            const wanted = { name: form.get("name"), role: form.get("role") };
            void change(() => post("/api/tokens", wanted));
          }}
        >
          <input
            name="name"
            required
            aria-label={words.tokenName}
            placeholder={words.namePlaceholder}
            style={{ maxWidth: "12rem" }}
          />
          <select name="role" aria-label={words.tokenRole} defaultValue="viewer">
            {ROLES.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
          <button type="submit">{words.createToken}</button>
        </form>
      )}
      <p className={css.texts.muted}>{words.programHint}</p>
      {created && (
        <p role="status">
          {words.copyNow}{" "}
          <code className={css.texts.secret} data-secret="">
            {created}
          </code>
        </p>
      )}
      {revoking && (
        <Confirm
          title={words.revokeAsk(revoking.name)}
          verb={text.app.revoke}
          onConfirm={() =>
            void change(() => remove(`/api/tokens/${encodeURIComponent(revoking.id)}`))
          }
          onClose={() => setRevoking(undefined)}
        >
          <p>{revoking.label || revoking.kind}</p>
        </Confirm>
      )}
    </section>
  );
}

/** The read-only links to single sessions. */
export function Shares() {
  const found = useQuery(useCallback(() => get<Schemas["ShareList"]>("/api/shares"), []));
  const sessions = useAppState((state) => state.sessions);
  const action = useAction();
  const revoke = async (id: string): Promise<void> => {
    if (await action.run(() => remove(`/api/shares/${encodeURIComponent(id)}`))) found.reload();
  };
  const shares = found.value?.shares ?? [];
  return (
    <section className={css.card.card}>
      <h2>{words.links}</h2>
      <p className={css.texts.muted}>{words.linksHint}</p>
      <ErrorText error={found.error || action.error} />
      {shares.length > 0 ? (
        <Table heads={[words.heads.name, words.session, words.heads.expires, ACTIONS]}>
          {shares.map((share) => {
            const session = sessions.get(share.session);
            return (
              <tr key={share.id}>
                <td>{share.name}</td>
                <td>
                  <Link href={`/s/${encodeURIComponent(share.session)}`}>
                    {session ? nameOf(session) : share.session}
                  </Link>
                </td>
                <td>{share.expires ? moment(share.expires * 1000) : words.never}</td>
                <td>
                  <RevokeButton
                    what={words.linkOf(share.name)}
                    onClick={() => void revoke(share.id)}
                  />
                </td>
              </tr>
            );
          })}
        </Table>
      ) : (
        !found.loading && <p className={css.texts.muted}>{words.noLinks}</p>
      )}
    </section>
  );
}
