// Web Push for this browser: the worker in `/sw.js` and its subscription, which is registered with the hub.

import { get, post, remove } from "../api/http";
import { text as words } from "../text";

const WORKER = "/sw.js";
const KINDS = "quarterdeck.push.kinds";
const BUTTONS = "quarterdeck.push.buttons";

/** What a notification can be about, as the hub names it. */
export const PUSH_KINDS = ["question", "finished", "failed", "budget"] as const;
export type PushKind = (typeof PUSH_KINDS)[number];

/** What this browser wants to be told of. */
export function pushKinds(): PushKind[] {
  const chosen = localStorage.getItem(KINDS)?.split(" ") ?? ["question"];
  return PUSH_KINDS.filter((kind) => chosen.includes(kind));
}

/** Choose a kind, or not; the hub is told if this browser gets pushes. */
export async function choosePushKind(kind: PushKind, on: boolean, pushes: boolean): Promise<void> {
  const next = PUSH_KINDS.filter((one) => (one === kind ? on : pushKinds().includes(one)));
  localStorage.setItem(KINDS, next.join(" "));
  if (pushes) await subscribe();
}

/** Whether notifications of questions have buttons that answer. */
export const pushButtons = (): boolean => localStorage.getItem(BUTTONS) === "yes";

export async function choosePushButtons(on: boolean, pushes: boolean): Promise<void> {
  if (on) localStorage.setItem(BUTTONS, "yes");
  else localStorage.removeItem(BUTTONS);
  if (pushes) await subscribe();
}

/** Why this browser cannot receive pushes; empty when it can. */
export function pushBlocker(): string {
  if (!window.isSecureContext) return words.states.push.needsHttps;
  if (!("serviceWorker" in navigator) || !("PushManager" in window))
    return words.states.push.notSupported;
  if (Notification.permission === "denied") return words.states.push.blocked;
  return "";
}

/** Have the hub send pushes to this browser. Throws an error with words for the person. */
export async function subscribe(): Promise<void> {
  const blocker = pushBlocker();
  if (blocker) throw new Error(blocker);
  if ((await Notification.requestPermission()) !== "granted")
    throw new Error(words.states.push.blocked);
  await navigator.serviceWorker.register(WORKER);
  const { pushManager } = await navigator.serviceWorker.ready;
  const key = decodeBase64Url((await get<{ key: string }>("/api/push")).key);
  let subscription = await pushManager.getSubscription();
  if (subscription && !sameBytes(subscription.options.applicationServerKey, key)) {
    await subscription.unsubscribe(); // the hub has another key now, and could not send there
    subscription = null;
  }
  try {
    subscription ??= await pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: key,
    });
  } catch {
    throw new Error(words.states.push.serviceAway);
  }
  const { endpoint, keys } = subscription.toJSON();
  await post("/api/push/subscriptions", {
    endpoint,
    keys: { p256dh: keys?.p256dh, auth: keys?.auth },
    kinds: pushKinds(),
    buttons: pushButtons(),
  });
}

/** Have the hub send no more pushes to this browser. */
export async function unsubscribe(): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.getRegistration(WORKER);
  const subscription = await registration?.pushManager?.getSubscription();
  if (!subscription) return;
  // The browser first: the push service tells the hub at the latest when the subscription is gone.
  await subscription.unsubscribe();
  await remove("/api/push/subscriptions", { endpoint: subscription.endpoint });
}

/** When the page opens: the login may be new, and so may the hub's key. */
export async function renewPush(): Promise<void> {
  if (pushBlocker() || Notification.permission !== "granted") return;
  await subscribe().catch(() => undefined); // it is tried again the next time
}

/** The bytes of a text in base64url. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function sameBytes(given: ArrayBuffer | null, key: Uint8Array): boolean {
  const bytes = new Uint8Array(given ?? new ArrayBuffer(0));
  return bytes.length === key.length && bytes.every((byte, index) => byte === key[index]);
}
