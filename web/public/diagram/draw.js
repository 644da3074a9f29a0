// Draws one diagram in a frame that has no origin: it can reach neither the page nor the hub.
// The page sends the source and gets a picture, or word that there is none. It ends the frame itself.
(() => {
  const { mermaid } = window;
  const SVG = "http://www.w3.org/2000/svg";
  const UNWANTED = "script, foreignObject, iframe, image, audio, video, animate, set";

  // Without what a picture does not need: scripts, HTML, links, and things from elsewhere.
  const clean = (svg) => {
    const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    if (root.localName !== "svg" || root.namespaceURI !== SVG) throw new Error("no_picture");
    for (const element of root.querySelectorAll(UNWANTED)) element.remove();
    for (const element of [root, ...root.querySelectorAll("*")]) {
      if (element.namespaceURI !== SVG) element.remove();
      for (const { name, value } of [...element.attributes]) {
        const isLink = name === "href" || name.endsWith(":href");
        if (/^on/i.test(name) || (isLink && !value.startsWith("#"))) element.removeAttribute(name);
      }
    }
    // A picture has a size of its own.
    const [, , width, height] = (root.getAttribute("viewBox") ?? "").split(/[ ,]+/).map(Number);
    if (width > 0 && height > 0) {
      root.setAttribute("width", String(Math.ceil(width)));
      root.setAttribute("height", String(Math.ceil(height)));
    }
    return new XMLSerializer().serializeToString(root);
  };

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
        window.parent.postMessage({ svg: clean(svg) }, "*");
      } catch {
        window.parent.postMessage({ failed: true }, "*");
      }
    },
    { once: true },
  );
  window.parent.postMessage({ ready: Boolean(mermaid) }, "*");
})();
