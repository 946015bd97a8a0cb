// Shows notifications while no page is in front, also those that come by Web Push, and leads back to the page.

addEventListener("install", () => skipWaiting());

/** What a message says; an empty object for what cannot be read. */
function content(data) {
  try {
    const value = data.json();
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

async function tell({ id = 0, kind = "alert", state, camera, time, title = "nightjar" }) {
  // The page has the same tag for it.
  const tag = `nightjar-${kind}-${camera ?? ""}`;
  const isOver = state === "acknowledged";
  const before = await registration.getNotifications({ tag });
  const isKnown = before.some((one) => one.data?.id === id);
  const when = new Date(time);
  const words = [camera, Number.isNaN(when.getTime()) ? null : when.toLocaleTimeString()].filter((word) => word);
  const isSilent = isOver || isKnown;
  await registration.showNotification(title, {
    body: words.join(" · "), tag, icon: "icon.png", data: { id, camera }, requireInteraction: !isOver, silent: isSilent,
    renotify: !isSilent, ...isSilent ? {} : { vibrate: [200, 100, 200, 100, 200] },
  });
}

// Browsers demand a notification for each message.
addEventListener("push", (event) => event.waitUntil(Promise.all([tell(content(event.data)), retry()])));

/**
 * Where this worker and the page (push.js) keep what they know of the subscription: `{ key, isPending }`, `{ isEnded }` if a person
 * has ended it, or nothing.
 */
const store = { name: "nightjar-push", address: new URL("push-state", location.href).href };

/** What is known of the subscription; an empty object for nothing. */
async function recall() {
  try {
    const kept = await (await caches.open(store.name)).match(store.address);
    return kept ? await kept.json() : {};
  } catch {
    return {};
  }
}

/** Keeps that the host does not know the present subscription yet. The page clears it. */
async function keepPending(known) {
  try {
    const kept = new Response(JSON.stringify({ ...known, isPending: true }));
    await (await caches.open(store.name)).put(store.address, kept);
  } catch {
    // Without a store the notification is all that reminds of it.
  }
}

/** Subscribes again after the browser or its push service has ended the subscription. */
async function renew({ oldSubscription, newSubscription }) {
  const known = await recall();
  if (known.isEnded) return drop(newSubscription);
  await keepPending(known);
  await resume(oldSubscription?.options?.applicationServerKey ?? known.key, newSubscription);
}

/** Tries again what was impossible before. */
async function retry() {
  const known = await recall();
  if (known.isEnded) return drop(null);
  if (known.isPending) await resume(known.key);
}

/** Ends what a person has ended on the page, and the browser has kept or made anew. */
async function drop(subscription) {
  const present = subscription ?? await registration.pushManager.getSubscription();
  await present?.unsubscribe().catch(() => {});
}

/**
 * Subscribes where there is no subscription. The host learns it from a page, which has the log-in: from one that is open, or else
 * from the next one, to which a notification leads. Where that is impossible now, the next message or page tries it again.
 */
async function resume(key, subscription) {
  const manager = registration.pushManager;
  let present = subscription ?? await manager.getSubscription();
  if (!present && key) {
    present = await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key }).catch(() => null);
  }
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const one of windows) one.postMessage({ isRenewed: true });
  if (windows.length && present) return;
  await registration.showNotification("Alerts no longer reach this device", {
    body: "Touch to open the page, so that they do again.", tag: "nightjar-renewed", icon: "icon.png", requireInteraction: true,
  });
}

addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event)));

addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { camera } = event.notification.data ?? {};
  const page = new URL("../", location.href).href;
  event.waitUntil(clients.matchAll({ type: "window", includeUncontrolled: true }).then((windows) => {
    const open = windows.find((one) => one.url.startsWith(page));
    if (!open) return clients.openWindow(page + (camera ? `#${encodeURIComponent(camera)}` : ""));
    if (camera) open.postMessage({ camera });
    return open.focus();
  }));
});
