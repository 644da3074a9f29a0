import { useCallback } from "react";
import type { ControlRequest } from "../api/types";
import { isObject } from "../state/contentBlocks";
import { lookup } from "../state/lookup";
import { store, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import { McpAdd } from "./McpAdd";
import { McpLogin } from "./McpLogin";
import type { PanelProps } from "./Panel";

interface Server {
  name: string;
  status: string;
  error?: string;
  serverInfo?: { name: string; version: string };
  tools?: { name: string; description?: string }[];
  /** Where it comes from: `dynamic` are those that were added in the session. */
  scope?: string;
  config?: unknown;
}

/** Servers that were added in the session: they are given again with each that is added. */
function kept(servers: readonly Server[]): Record<string, unknown> {
  const added = servers.filter((one) => one.scope === "dynamic" && isObject(one.config));
  return Object.fromEntries(added.map((one) => [one.name, one.config]));
}

/** The session's MCP servers: their state, and what can be done with them. */
export function Mcp({ session }: PanelProps) {
  const id = session.session;
  const rights = useRights();
  const action = useAction();
  const ask = useCallback(
    () => store.control<{ mcpServers?: Server[] }>(id, { subtype: "mcp_status" }),
    [id],
  );
  const status = useQuery(ask);
  const control = async (request: ControlRequest): Promise<void> => {
    await action.run(() => store.control(id, request));
    status.reload();
  };
  const servers = status.value?.mcpServers ?? [];
  return (
    <>
      <h2>{text.session.mcp.title}</h2>
      <ErrorText error={status.error || action.error} />
      {!servers.length && !status.loading && (
        <p className={css.texts.muted}>{text.session.mcp.none}</p>
      )}
      {servers.map((server) => (
        <section key={server.name} className={css.card.card}>
          <div className={css.layout.buttons}>
            <strong>{server.name}</strong>
            <span
              className={css.badge.badge}
              data-tone={server.status === "connected" ? "good" : "bad"}
            >
              <span className={css.badge.dot} aria-hidden="true" />
              {lookup(text.session.mcp.statuses, server.status) ?? server.status}
            </span>
          </div>
          {server.error && <p className={css.texts.error}>{server.error}</p>}
          {server.tools && (
            <details>
              <summary>{text.session.mcp.tools(server.tools.length)}</summary>
              <ul>
                {server.tools.map((tool) => (
                  <li key={tool.name}>
                    <code>{tool.name}</code>{" "}
                    <span className={css.texts.muted}>{tool.description}</span>
                  </li>
                ))}
              </ul>
            </details>
          )}
          {rights.includes("manage") && (
            <div className={css.layout.buttons}>
              <button
                type="button"
                className={css.button.small}
                onClick={() =>
                  void control({
                    subtype: "mcp_toggle",
                    serverName: server.name,
                    enabled: server.status === "disabled",
                  })
                }
              >
                {server.status === "disabled" ? text.session.mcp.enable : text.session.mcp.disable}
              </button>
              <button
                type="button"
                className={css.button.small}
                onClick={() => void control({ subtype: "mcp_reconnect", serverName: server.name })}
              >
                {text.session.mcp.reconnect}
              </button>
              <McpLogin
                session={id}
                server={server.name}
                status={server.status}
                onDone={status.reload}
              />
            </div>
          )}
        </section>
      ))}
      {rights.includes("manage") && session.run !== null && (
        <McpAdd
          session={id}
          known={servers.map((server) => server.name)}
          kept={kept(servers)}
          onDone={status.reload}
        />
      )}
    </>
  );
}
