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
addEventListener("push", (event) => event.waitUntil(tell(content(event.data))));

/**
 * Subscribes again after the browser or its push service has ended the subscription. The host learns it from a page, which has
 * the log-in: from one that is open, or else from the next one, to which a notification leads.
 */
async function renew({ oldSubscription, newSubscription }) {
  const key = oldSubscription?.options?.applicationServerKey;
  if (!newSubscription && key) {
    // Where that is impossible, the notification comes all the same.
    await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }).catch(() => {});
  }
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const one of windows) one.postMessage({ isRenewed: true });
  if (windows.length && await registration.pushManager.getSubscription()) return;
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
