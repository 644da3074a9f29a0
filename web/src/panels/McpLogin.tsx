import { type FormEvent, useState } from "react";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";

interface Login {
  authUrl?: string;
  requiresUserAction?: boolean;
}

/** Log in to an MCP server, or out of it. The server's page opens only when a person clicks. */
export function McpLogin(props: {
  session: string;
  server: string;
  status: string;
  onDone: () => void;
}) {
  const { session, server: serverName } = props;
  const action = useAction();
  const [login, setLogin] = useState<Login>();
  const begin = (): void =>
    void action.run(async () => {
      setLogin(await store.control<Login>(session, { subtype: "mcp_authenticate", serverName }));
      props.onDone();
    });
  const finish = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const callbackUrl = String(new FormData(event.currentTarget).get("url") ?? "").trim();
    if (!callbackUrl) return;
    void action.run(async () => {
      await store.control(session, { subtype: "mcp_oauth_callback_url", serverName, callbackUrl });
      setLogin(undefined);
      props.onDone();
    });
  };
  const logOut = (): void =>
    void action.run(async () => {
      await store.control(session, { subtype: "mcp_clear_auth", serverName });
      props.onDone();
    });
  const url = login?.authUrl && /^https?:\/\//i.test(login.authUrl) ? login.authUrl : undefined;
  return (
    <>
      {props.status === "needs-auth" ? (
        <button type="button" className={css.button.small} disabled={action.busy} onClick={begin}>
          {text.session.mcp.logIn}
        </button>
      ) : (
        props.status === "connected" && (
          <button
            type="button"
            className={css.button.small}
            disabled={action.busy}
            onClick={logOut}
          >
            {text.session.mcp.logOut}
          </button>
        )
      )}
      {login && !url && <p className={css.texts.muted}>{text.session.mcp.noLogin}</p>}
      {url && (
        <form onSubmit={finish}>
          <p>
            <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>
              {text.session.mcp.goTo}
            </a>{" "}
            <span className={css.texts.muted}>{new URL(url).host}</span>
          </p>
          <label className={css.field.field}>
            <span>{text.session.mcp.callback}</span>
            <input name="url" type="url" autoComplete="off" />
          </label>
          <button type="submit" className={css.button.small} disabled={action.busy}>
            {text.session.mcp.finish}
          </button>
        </form>
      )}
      <ErrorText error={action.error} />
    </>
  );
}
