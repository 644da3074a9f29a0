// This is in the page itself (`vite.config.ts`). Where the address names a session, it is read, and
// the code that shows it is loaded, while the app itself is still being loaded. The store takes the
// result once; without a result it reads the session itself.
{
  const [, id] = /^\/s\/([^/]+)/.exec(location.pathname) ?? [];
  const read = async () => {
    const key = localStorage.getItem("quarterdeck.page-key");
    const headers = { Accept: "application/json" };
    if (key) headers["X-Quarterdeck-Page-Key"] = key;
    const path = `/api/sessions/${id}/latest?limit=200`;
    const response = await fetch(path, { headers });
    if (response.ok) return response.json();
    await response.body?.cancel(); // what nobody reads would hold its connection
    return undefined;
  };
  if (id) {
    window.prefetched = read().catch(() => undefined);
    for (const href of SESSION_FILES) {
      const style = href.endsWith(".css");
      const link = document.createElement("link");
      link.rel = style ? "preload" : "modulepreload";
      if (style) link.as = "style";
      link.crossOrigin = "";
      link.href = href;
      document.head.append(link);
    }
  }
  // On a slow connection the story comes before the fonts. They are loaded after it, for the next page:
  // text that is being read must not move. Where data is to be saved, they never come.
  const KEPT = "quarterdeck.fonts-kept";
  const { saveData, rtt = 0, downlink = 10 } = navigator.connection ?? {};
  // Chromium says 100 and 1.4 until it knows better.
  const slow = rtt >= 150 || downlink < 1;
  if (saveData || (slow && !localStorage.getItem(KEPT))) {
    document.documentElement.dataset.fonts = "later";
    const keep = () =>
      Promise.all(
        ["Inter Variable", "JetBrains Mono Variable"].map((name) =>
          document.fonts.load(`1em "${name}"`),
        ),
      )
        .then(() => localStorage.setItem(KEPT, "yes"))
        .catch(() => undefined);
    if (!saveData) addEventListener("load", () => setTimeout(keep, 3000));
  }
}
