// The service worker shows the hub's push messages when no page is open. It caches nothing and
// intercepts no requests: the page is always loaded from the hub.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let note = {};
  try {
    note = event.data?.json() ?? {};
  } catch {
    // A browser wants every push to be shown, also one that cannot be read.
  }
  event.waitUntil(
    self.registration.showNotification(note.title || "An agent is waiting for you", {
      body: note.body || "",
      tag: note.tag || "quarterdeck",
      data: { url: note.url || "/" },
    }),
  );
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.url || "/"));
});

/** Show this path in an open window of the app, or else in a new one. */
async function show(path) {
  const url = new URL(path, self.location.origin);
  if (url.origin !== self.location.origin) return;
  const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = open.find((each) => each.url === url.href) ?? open[0];
  if (!there) {
    await self.clients.openWindow(url.href);
    return;
  }
  // Focus first: a browser allows it only while it knows of the click.
  await there.focus().catch(() => undefined);
  if (there.url !== url.href) await there.navigate(url.href).catch(() => undefined);
}
