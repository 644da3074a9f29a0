// Draws one diagram in a frame that has no origin: it can reach neither the page nor the hub.
// The page sends the source and gets a picture, or word that there is none. It ends the frame itself.
(() => {
  const { mermaid } = window;
  window.addEventListener(
    "message",
    async ({ data, source }) => {
      if (source !== window.parent || typeof data?.source !== "string") return;
      try {
        mermaid.initialize({
          startOnLoad: false,
          securityLevel: "strict",
          htmlLabels: false,
          flowchart: { htmlLabels: false },
          theme: data.dark ? "dark" : "neutral",
          maxTextSize: 5000,
          maxEdges: 200,
          suppressErrorRendering: true,
          deterministicIds: true,
          secure: ["securityLevel", "htmlLabels", "maxTextSize", "maxEdges", "startOnLoad", "secure"],
        });
        const { svg } = await mermaid.render("diagram", data.source);
        window.parent.postMessage({ svg }, "*");
      } catch {
        window.parent.postMessage({ failed: true }, "*");
      }
    },
    { once: true },
  );
  window.parent.postMessage({ ready: Boolean(mermaid) }, "*");
})();
