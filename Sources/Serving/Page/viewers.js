// Who watches the camera: who, by what, since when, from where, and how well.

import { element } from "./elements.js";
import { strings } from "./strings.js";

/** The interval at which the list is asked for again, in milliseconds. */
const interval = 2000;

/** A duration as 1:05:09. */
function clock(seconds) {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function line(viewer) {
  const place = viewer.address ?? strings.thisHost;
  const losses = viewer.reception?.packets_lost ?? viewer.packets_lost;
  return element("li", {},
    element("span", {}, viewer.user ?? (viewer.kind === "destination" ? viewer.url : strings.somebody)),
    element("span.faint", {}, [
      strings.kinds[viewer.kind] ?? viewer.kind, viewer.kind === "destination" ? null : place,
      viewer.seconds === undefined ? null : clock(viewer.seconds),
      viewer.rendition ? strings.weakRendition(viewer.rendition) : viewer.bandwidth ? strings.weakNetwork(viewer.bandwidth) : null,
      viewer.stopped ? strings.stopped : viewer.slow ? strings.tooSlow : losses > 0 ? strings.lost(losses) : null,
    ].filter((word) => word).join(" · ")));
}

/** A dialog with the viewers of `camera`, as they are while it is open. */
export function viewersDialog(login, camera) {
  const list = element("ul.viewers", { "aria-live": "off" });
  const dialog = element("dialog.phones", { "aria-label": strings.viewers }, element("h2", {}, strings.viewers), list,
    element("button", { type: "button", onclick: () => dialog.close() }, strings.close));
  let timer = null;
  dialog.addEventListener("close", () => {
    clearInterval(timer);
    dialog.remove();
  });

  async function draw() {
    const answer = await login.fetch(`v1/cameras/${encodeURIComponent(camera)}/viewers`).catch(() => null);
    if (!answer?.ok) return;
    const { viewers } = await answer.json();
    list.replaceChildren(...viewers.map(line));
    if (!viewers.length) list.replaceChildren(element("li", {}, strings.nobody));
  }

  return {
    element: dialog,
    open: () => {
      dialog.showModal();
      timer = setInterval(draw, interval);
      return draw();
    },
  };
}
