import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { pwa } from "../src/text/en/pwa";
import { isEnabled, setPreference } from "../src/ui/preferences";
import {
  choosePushButtons,
  choosePushKind,
  decodeBase64Url,
  pushBlocker,
  pushKinds,
  renewPush,
  subscribe,
  unsubscribe,
} from "../src/ui/push";

const KEY = "BP-_AQ"; // 4, 255, 191, 1
const ENDPOINT = "https://push.example/secret";

/** A browser with Web Push, a hub, and what was asked of either. */
function browser(has: { permission?: string; madeWith?: number[]; fails?: boolean } = {}) {
  const asked: [string, string, unknown][] = [];
  const subscriptionWith = (key: Uint8Array) => ({
    endpoint: ENDPOINT,
    options: { applicationServerKey: key.buffer },
    toJSON: () => ({ endpoint: ENDPOINT, keys: { p256dh: "p", auth: "a" } }),
    unsubscribe: vi.fn(async () => {
      held = null;
      return true;
    }),
  });
  let held: ReturnType<typeof subscriptionWith> | null = has.madeWith
    ? subscriptionWith(Uint8Array.from(has.madeWith))
    : null;
  const pushManager = {
    getSubscription: async () => held,
    subscribe: vi.fn(async (options: { applicationServerKey: Uint8Array }) => {
      if (has.fails) throw new DOMException("no service", "AbortError");
      held = subscriptionWith(options.applicationServerKey);
      return held;
    }),
  };
  const permission = has.permission ?? "granted";
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("PushManager", class {});
  vi.stubGlobal("Notification", { permission, requestPermission: async () => permission });
  vi.stubGlobal("navigator", {
    serviceWorker: {
      register: vi.fn(async () => undefined),
      ready: Promise.resolve({ pushManager }),
      getRegistration: async () => ({ pushManager }),
    },
  });
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    asked.push([init.method ?? "", path, init.body ? JSON.parse(String(init.body)) : undefined]);
    return new Response(JSON.stringify({ key: KEY }));
  });
  return { asked, pushManager };
}

const SUBSCRIBED = [
  "POST",
  "/api/push/subscriptions",
  {
    endpoint: ENDPOINT,
    keys: { p256dh: "p", auth: "a" },
    kinds: ["question"],
    buttons: false,
  },
];

describe("being told while the deck is closed", () => {
  beforeEach(() => localStorage.clear());
  afterEach(() => vi.unstubAllGlobals());

  it("reads the hub's key as it is sent", () => {
    expect([...decodeBase64Url(KEY)]).toEqual([4, 255, 191, 1]);
  });

  it("tells the hub of a subscription with the hub's key", async () => {
    const { asked, pushManager } = browser();
    expect(await setPreference("push", true)).toBe(true);
    expect(isEnabled("push")).toBe(true);
    expect([...(pushManager.subscribe.mock.calls[0]?.[0].applicationServerKey ?? [])]).toEqual([
      4, 255, 191, 1,
    ]);
    expect(asked.at(-1)).toEqual(SUBSCRIBED);
  });

  it("tells the hub what is wanted, and again when that is changed", async () => {
    const { asked } = browser();
    await choosePushKind("failed", true, false);
    expect(asked).toEqual([]); // this browser gets no pushes yet
    await setPreference("push", true);
    await choosePushKind("question", false, true);
    await choosePushButtons(true, true);
    const told = asked.filter(([method]) => method === "POST").map(([, , body]) => body);
    expect(told).toMatchObject([
      { kinds: ["question", "failed"], buttons: false },
      { kinds: ["failed"], buttons: false },
      { kinds: ["failed"], buttons: true },
    ]);
    localStorage.setItem("quarterdeck.push.kinds", "everything budget");
    expect(pushKinds()).toEqual(["budget"]);
  });

  it("keeps a subscription that is good, and makes another when the hub has another key", async () => {
    const good = browser({ madeWith: [4, 255, 191, 1] });
    await subscribe();
    expect(good.pushManager.subscribe).not.toHaveBeenCalled();
    expect(good.asked.at(-1)).toEqual(SUBSCRIBED);
    const old = browser({ madeWith: [1, 2, 3, 4] });
    await subscribe();
    expect(old.pushManager.subscribe).toHaveBeenCalledOnce();
  });

  it("takes it back from the browser and from the hub", async () => {
    const { asked, pushManager } = browser({ madeWith: [4, 255, 191, 1] });
    await setPreference("push", true);
    await setPreference("push", false);
    expect(isEnabled("push")).toBe(false);
    expect(await pushManager.getSubscription()).toBeNull();
    expect(asked.at(-1)).toEqual(["DELETE", "/api/push/subscriptions", { endpoint: ENDPOINT }]);
    const count = asked.length;
    await unsubscribe();
    expect(asked).toHaveLength(count);
  });

  it("says why it cannot be", async () => {
    browser({ fails: true });
    await expect(setPreference("push", true)).rejects.toThrow("cannot be reached");
    expect(isEnabled("push")).toBe(false);
    browser({ permission: "denied" });
    await expect(setPreference("push", true)).rejects.toThrow("blocks notifications");
    browser();
    vi.stubGlobal("isSecureContext", false);
    expect(pushBlocker()).toContain("https");
  });

  it("asks nobody for permission when the deck opens", async () => {
    const { asked } = browser({ permission: "default" });
    await renewPush();
    expect(asked).toEqual([]);
  });
});

describe("the service worker", () => {
  type Shown = [string, { body: string; actions: { title: string }[] }];

  /** Runs the worker as it is built, and gives it this message. */
  async function shown(message: unknown): Promise<Shown> {
    const source = readFileSync("src/pwa/serviceWorker.js", "utf8");
    const built = source.replace("= WORKER_TEXTS", () => `= ${JSON.stringify(pwa)}`);
    const listeners = new Map<string, (event: object) => void>();
    const showNotification = vi.fn(async (..._: Shown) => undefined);
    const self = {
      addEventListener: (type: string, act: (event: object) => void) => listeners.set(type, act),
      registration: { showNotification },
    };
    new Function("self", built)(self);
    const data = {
      json: () => {
        if (message === undefined) throw new SyntaxError();
        return message;
      },
    };
    listeners.get("push")?.({ data, waitUntil: () => undefined });
    return showNotification.mock.calls[0] as Shown;
  }

  it.each([
    [{ code: "question", name: "tidy", body: "Bash: make" }, "tidy waits for you", "Bash: make"],
    [{ code: "finished", name: "", body: "Done." }, "An agent has finished", "Done."],
    [{ code: "failed", name: "a $& b", body: "rate_limit" }, "a $& b has failed", "rate_limit"],
    [{ code: "failed", name: "a", body: "error_max_turns" }, "a has failed", "turn limit reached"],
    [{ code: "crashed", name: "a", body: "killed" }, "a has crashed", "killed"],
    [
      { code: "budget", name: "a", body: "", unit: "usd", limit: 5 },
      "a: budget spent",
      "The limit of 5 US dollars is reached.",
    ],
    [{ code: "constructor", name: "a", body: "x" }, "An agent is waiting for you", "x"],
    [undefined, "An agent is waiting for you", ""],
  ])("takes its words from the catalogue: %o", async (message, title, body) => {
    const [told, options] = await shown(message);
    expect([told, options.body]).toEqual([title, body]);
  });

  it("offers to allow only what the hub says that it shows", async () => {
    const note = { code: "question", name: "a", body: "Bash: ls", answer: "x.y" };
    const titles = async (more: object) =>
      (await shown({ ...note, ...more }))[1].actions.map((one) => one.title);
    expect(await titles({})).toEqual(["Deny"]);
    expect(await titles({ allow: true })).toEqual(["Allow once", "Deny"]);
    expect(await titles({ answer: "" })).toEqual([]);
  });
});
