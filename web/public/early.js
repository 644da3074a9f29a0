// Asks for the session that the address names while the deck itself is still being loaded. What comes
// of it is taken by the store, once; where nothing does, the store asks by itself.
{
  const [, id] = /^\/s\/([^/]+)$/.exec(location.pathname) ?? [];
  const ask = async (path) => {
    const key = localStorage.getItem("quarterdeck.page-key");
    const headers = key ? { "X-Quarterdeck-Page-Key": key } : {};
    const response = await fetch(`/api/sessions/${id}${path}`, { headers });
    if (!response.ok) throw new Error(String(response.status));
    return response.json();
  };
  const read = async () => {
    const session = await ask("");
    const after = Math.max(0, session.head - 200);
    const { events } = await ask(`/events?after=${after}&limit=200`);
    return { session, events };
  };
  if (id) window.early = read().catch(() => undefined);
}
