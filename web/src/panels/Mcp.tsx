import { useCallback } from "react";
import { store, useRights } from "../state/store";
import { plural } from "../ui/format";
import { useDoing } from "../ui/useDoing";
import { useHub } from "../ui/useHub";
import type { PanelProps } from "./Panel";

interface Server {
  name: string;
  status: string;
  error?: string;
  serverInfo?: { name: string; version: string };
  tools?: { name: string; description?: string }[];
}

/** The session's MCP servers: how they are, on or off, connect again. */
export function Mcp({ session }: PanelProps) {
  const id = session.session;
  const rights = useRights();
  const [doing, error] = useDoing();
  const ask = useCallback(
    () => store.control<{ mcpServers?: Server[] }>(id, { subtype: "mcp_status" }),
    [id],
  );
  const status = useHub(ask);
  const control = async (request: Record<string, unknown>): Promise<void> => {
    await doing(() => store.control(id, request));
    status.again();
  };
  const servers = status.value?.mcpServers ?? [];
  return (
    <>
      <h2>MCP servers</h2>
      {(status.error || error) && <p className="error">{status.error || error}</p>}
      {!servers.length && !status.loading && <p className="why">This session has no MCP server.</p>}
      {servers.map((server) => (
        <section key={server.name} className="card">
          <div className="buttons">
            <strong>{server.name}</strong>
            <span className="badge" data-tone={server.status === "connected" ? "idle" : "bad"}>
              <span className="dot" aria-hidden="true" />
              {server.status}
            </span>
          </div>
          {server.error && <p className="error">{server.error}</p>}
          {server.tools && (
            <details>
              <summary>{plural(server.tools.length, "tool")}</summary>
              <ul>
                {server.tools.map((tool) => (
                  <li key={tool.name}>
                    <code>{tool.name}</code> <span className="why">{tool.description}</span>
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
                {server.status === "disabled" ? "Turn on" : "Turn off"}
              </button>
              <button
                type="button"
                className="small"
                onClick={() => void control({ subtype: "mcp_reconnect", serverName: server.name })}
              >
                Connect again
              </button>
            </div>
          )}
        </section>
      ))}
    </>
  );
}
