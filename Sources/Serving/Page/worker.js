// Shows notifications while no page is in front, and leads back to the page.

addEventListener("install", () => skipWaiting());
addEventListener("notificationclick", (event) => {
  event.notification.close();
  const page = new URL("../", location.href).href;
  event.waitUntil(clients.matchAll({ type: "window", includeUncontrolled: true }).then((windows) => {
    const open = windows.find((one) => one.url.startsWith(page));
    return open ? open.focus() : clients.openWindow(page);
  }));
});
