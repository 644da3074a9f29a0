// Reads the session that the address names while the app itself is still being loaded. The store
// takes the result once; without a result it reads the session itself.
{
  const [, id] = /^\/s\/([^/]+)$/.exec(location.pathname) ?? [];
  const read = async (path) => {
    const key = localStorage.getItem("quarterdeck.page-key");
    const headers = key ? { "X-Quarterdeck-Page-Key": key } : {};
    const response = await fetch(`/api/sessions/${id}${path}`, { headers });
    if (!response.ok) throw new Error(String(response.status));
    return response.json();
  };
  const prefetch = async () => {
    const session = await read("");
    const after = Math.max(0, session.head - 200);
    const { events } = await read(`/events?after=${after}&limit=200&echoes=false`);
    return { session, events };
  };
  if (id) window.prefetched = prefetch().catch(() => undefined);
}
