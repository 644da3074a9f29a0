// Web Push for this browser: the worker in `/sw.js` and its subscription, which the hub is told of.
import { get, post, remove } from "../api/http";

const WORKER = "/sw.js";

/** Why this browser cannot be told while the deck is closed; empty when it can. */
export function pushHindrance(): string {
  if (!window.isSecureContext) return "This needs https, or a hub on this machine.";
  if (!("serviceWorker" in navigator) || !("PushManager" in window))
    return "This browser has no Web Push. On an iPhone, add the deck to the home screen first.";
  if (Notification.permission === "denied") return "The browser does not allow notifications here.";
  return "";
}

/** Have the hub tell this browser. Throws an error with words for the person. */
export async function subscribe(): Promise<void> {
  const hindrance = pushHindrance();
  if (hindrance) throw new Error(hindrance);
  if ((await Notification.requestPermission()) !== "granted")
    throw new Error("The browser does not allow notifications here.");
  await navigator.serviceWorker.register(WORKER);
  const { pushManager } = await navigator.serviceWorker.ready;
  const key = bytesOf((await get<{ key: string }>("/api/push")).key);
  let subscription = await pushManager.getSubscription();
  if (subscription && !same(subscription.options.applicationServerKey, key)) {
    await subscription.unsubscribe(); // the hub has another key now, and could not send there
    subscription = null;
  }
  try {
    subscription ??= await pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: key,
    });
  } catch {
    throw new Error("The push service of this browser cannot be reached.");
  }
  const { endpoint, keys } = subscription.toJSON();
  await post("/api/push/subscriptions", {
    endpoint,
    keys: { p256dh: keys?.p256dh, auth: keys?.auth },
  });
}

/** Have the hub tell this browser no more. */
export async function unsubscribe(): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.getRegistration(WORKER);
  const subscription = await registration?.pushManager?.getSubscription();
  if (!subscription) return;
  // The browser first: what it has given up the hub is told by the push service, at the latest.
  await subscription.unsubscribe();
  await remove("/api/push/subscriptions", { endpoint: subscription.endpoint });
}

/** When the deck opens: a login may be new, and so may the hub's key. */
export async function renewPush(): Promise<void> {
  if (pushHindrance() || Notification.permission !== "granted") return;
  await subscribe().catch(() => undefined); // it is tried again the next time
}

/** The bytes of base 64 as web addresses have it. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function same(given: ArrayBuffer | null, key: Uint8Array): boolean {
  const bytes = new Uint8Array(given ?? new ArrayBuffer(0));
  return bytes.length === key.length && bytes.every((byte, index) => byte === key[index]);
}
