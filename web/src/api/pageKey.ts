// The page key proves to the hub that a request comes from this page. The browser sends the
// login's cookie to every server on this host, whatever its port; this key stays with our origin.
// The login page puts it here (`login.js`), and `prefetch.js` reads it by the same name.
const NAME = "quarterdeck.page-key";
const HEADER = "X-Quarterdeck-Page-Key";
const PROTOCOL = "quarterdeck";

function pageKey(): string {
  try {
    return globalThis.localStorage?.getItem(NAME) ?? "";
  } catch {
    return ""; // a browser without storage: the hub answers that it is not logged in
  }
}

export function forgetPageKey(): void {
  globalThis.localStorage?.removeItem(NAME);
}

/** The headers of a request beside the cookie. */
export function keyHeaders(): Record<string, string> {
  const key = pageKey();
  return key ? { [HEADER]: key } : {};
}

/** The same for a WebSocket, which can send nothing but the protocols that it knows. */
export function keyProtocols(): string[] {
  const key = pageKey();
  return key ? [PROTOCOL, `${PROTOCOL}.page-key.${key}`] : [];
}
