// The service worker shows the hub's push messages when no page is open, and keeps the web app's own files,
// so that the app opens while the hub cannot be reached. It never keeps an answer of the API, and it asks
// the hub first for every page: a new version replaces the old one when it is first loaded.
//
// The build writes it to `/sw.js`, and the texts of the catalogue in place of `WORKER_TEXTS`.

const words = WORKER_TEXTS;

const FILES = "quarterdeck-files";
const SHELL = "/";
/** Files of the shell whose names do not change with their contents. */
const FIXED = new Set(["/icon.svg", "/icon-192.png", "/manifest.webmanifest"]);

self.addEventListener("install", (event) => {
  // Where the browser can be told so: what is never kept here goes past this worker, and does not wait for it.
  event
    .addRoutes?.([
      { condition: { urlPattern: { pathname: "/api/*" } }, source: "network" },
      { condition: { urlPattern: { pathname: "/shared/*" } }, source: "network" },
    ])
    ?.catch(() => undefined);
  event.waitUntil(
    fetch(SHELL, { cache: "no-cache" })
      .then((response) => keepShell(response))
      .catch(() => undefined) // it is kept when a page is loaded
      .then(() => self.skipWaiting()),
  );
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    if (isOfApp(url.pathname)) event.respondWith(page(event));
  } else if (url.pathname.startsWith("/assets/")) {
    event.respondWith(asset(request));
  } else if (FIXED.has(url.pathname)) {
    event.respondWith(fetch(request).catch(() => kept(url.pathname)));
  }
});

/** Whether this is a page of the app, and not one of the hub's own. */
function isOfApp(path) {
  if (/^\/(api|login|docs|share|metrics)(\/|$)/.test(path)) return false;
  return !path.slice(path.lastIndexOf("/")).includes(".");
}

/** A page of the app: from the hub, or else the one that is kept. */
async function page(event) {
  try {
    const response = await fetch(event.request);
    if (response.ok) event.waitUntil(keepShell(response.clone()).catch(() => undefined));
    return response;
  } catch {
    return kept(SHELL);
  }
}

async function kept(path) {
  return (await (await caches.open(FILES)).match(path)) ?? Response.error();
}

/** Keep the app's page with the files that it names, if it is another one than before. */
async function keepShell(response) {
  if (!response.ok || !response.headers.get("content-type")?.startsWith("text/html")) return;
  const files = await caches.open(FILES);
  const text = await response.clone().text();
  const before = await files.match(SHELL);
  if (before && (await before.text()) === text) return;
  const named = [...text.matchAll(/(?:src|href)="(\/[^"/][^"]*)"/g)].map(([, path]) => path);
  const wanted = [...new Set([...named, ...FIXED])];
  await Promise.all(
    wanted.map(async (path) => {
      const file = await fetch(path);
      if (file.ok) await files.put(path, file);
    }),
  );
  await files.put(SHELL, response);
  for (const old of await files.keys()) {
    const { pathname } = new URL(old.url);
    if (pathname !== SHELL && !wanted.includes(pathname)) await files.delete(old);
  }
}

/** A file that is named after its contents: it never changes. */
async function asset(request) {
  const files = await caches.open(FILES);
  const found = await files.match(request);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await files.put(request, response.clone());
  return response;
}

self.addEventListener("push", (event) => {
  let note = {};
  try {
    note = event.data?.json() ?? {};
  } catch {
    // A browser wants every push to be shown, also one that cannot be read.
  }
  event.waitUntil(
    self.registration.showNotification(titleOf(note), {
      body: bodyOf(note),
      tag: note.tag || "quarterdeck",
      data: { url: note.url || "/", answer: note.answer || "" },
      actions: actionsOf(note),
      requireInteraction: Boolean(note.answer),
    }),
  );
});

self.addEventListener("notificationclick", (event) => {
  const { url, answer } = event.notification.data ?? {};
  event.notification.close();
  const chosen = event.action === "allow" || event.action === "deny";
  event.waitUntil(chosen && answer ? answerWith(answer, event.action, url) : show(url || "/"));
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

/** The text for a code, if there is one. */
function textFor(texts, code) {
  return Object.hasOwn(texts, code ?? "") ? texts[code] : undefined;
}

function titleOf({ code, name }) {
  return (textFor(words.titles, code) ?? words.unknown).replace(
    "{name}",
    () => name || words.anAgent,
  );
}

/** What the agent says or wants; or what a code of the hub means. */
function bodyOf({ body = "", unit, limit }) {
  const reached = textFor(words.limits, unit)?.replace("{limit}", () => String(limit));
  return reached ?? textFor(words.outcomes, body) ?? body;
}

/** The buttons of a question. The hub says whether the notification shows all that would be allowed. */
function actionsOf(note) {
  if (!note.answer) return [];
  const deny = { action: "deny", title: words.deny };
  return note.allow ? [{ action: "allow", title: words.allow }, deny] : [deny];
}

/** Answer a question by the notification's one-time token; the hub wants this browser's login as well. */
async function answerWith(token, answer, path) {
  let problem = words.unreachable;
  try {
    const response = await fetch("/push/answer", {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, answer }),
    });
    if (response.ok) return;
    problem = (await response.json()).detail || problem;
  } catch {
    // It is told below.
  }
  await self.registration.showNotification(words.notAnswered, {
    body: problem,
    tag: "quarterdeck-not-answered",
    data: { url: path || "/" },
  });
}
