import { useCallback } from "react";
import type { ControlRequest } from "../api/types";
import { lookup } from "../state/lookup";
import { store, useRights } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { plural } from "../ui/format";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";
import type { PanelProps } from "./Panel";

interface Server {
  name: string;
  status: string;
  error?: string;
  serverInfo?: { name: string; version: string };
  tools?: { name: string; description?: string }[];
}

/** The states of an MCP server: the CLI's codes, in words. */
const STATUSES: Record<string, string> = {
  connected: "connected",
  pending: "connecting",
  failed: "failed",
  "needs-auth": "needs login",
  disabled: "disabled",
};

/** The session's MCP servers: their state, and buttons to disable and reconnect them. */
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
      <h2>MCP servers</h2>
      <ErrorText error={status.error || action.error} />
      {!servers.length && !status.loading && (
        <p className="muted">This session has no MCP servers.</p>
      )}
      {servers.map((server) => (
        <section key={server.name} className="card">
          <div className="buttons">
            <strong>{server.name}</strong>
            <span className="badge" data-tone={server.status === "connected" ? "good" : "bad"}>
              <span className="dot" aria-hidden="true" />
              {lookup(STATUSES, server.status) ?? server.status}
            </span>
          </div>
          {server.error && <p className="error">{server.error}</p>}
          {server.tools && (
            <details>
              <summary>{plural(server.tools.length, "tool")}</summary>
              <ul>
                {server.tools.map((tool) => (
                  <li key={tool.name}>
                    <code>{tool.name}</code> <span className="muted">{tool.description}</span>
                  </li>
                ))}
              </ul>
            </details>
          )}
          {rights.includes("manage") && (
            <div className="buttons">
              <button
                type="button"
                className="small"
                onClick={() =>
                  void control({
                    subtype: "mcp_toggle",
                    serverName: server.name,
                    enabled: server.status === "disabled",
                  })
                }
              >
                {server.status === "disabled" ? "Enable" : "Disable"}
              </button>
              <button
                type="button"
                className="small"
                onClick={() => void control({ subtype: "mcp_reconnect", serverName: server.name })}
              >
                Reconnect
              </button>
            </div>
          )}
        </section>
      ))}
    </>
  );
}
