// The phones that may watch by a log-in of their own: a link lets one in, and the list shuts it out.

import { element } from "./elements.js";
import { strings } from "./strings.js";

const marker = "phone=";

/** The one-time code of the address, or null. */
export function oneTimeCode() {
  const text = location.hash.slice(1);
  return text.startsWith(marker) ? text.slice(marker.length) : null;
}

/** A name for this device that its owner may change. */
function guess() {
  const found = ["iPhone", "iPad", "Android", "Mac", "Windows", "Linux"].find((word) => navigator.userAgent.includes(word));
  return found ?? "phone";
}

/** What a name may have: visible ASCII without : " and \ */
function allowed(name) {
  return name.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").trim().replace(/[^!-~]|[:"\\]/g, "-")
    .replace(/^#+/, "").slice(0, 64);
}

/** Asks for this device's name, and gets it a log-in of its own. The code is used only by a touch: programs that look at links leave it. */
export function pairingView(login, done) {
  const name = element("input", { name: "device", autocomplete: "off", required: true, maxlength: 64, value: guess() });
  const complaint = element("p.complaint", { role: "alert", hidden: true });
  const form = element("form.login", {
    onsubmit: async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      button.disabled = true;
      let text = strings.causes.unreachable;
      try {
        const answer = await fetch("v1/phones", {
          method: "POST", credentials: "omit", cache: "no-store", headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ code: oneTimeCode(), name: allowed(name.value) || "phone" }),
        });
        if (answer.ok) {
          login.setToken((await answer.json()).token);
          return done();
        }
        text = { 403: strings.codeUsed, 429: strings.tooManyPhones }[answer.status] ?? strings.codeUsed;
      } catch {
        // No answer.
      }
      complaint.textContent = text;
      complaint.hidden = false;
      button.disabled = false;
    },
  },
  element("h1", {}, strings.title), element("p", {}, strings.letIn), complaint,
  element("label", {}, strings.deviceName, name),
  element("button.main", { type: "submit" }, strings.watchHere));
  return { element: form };
}

/** A dialog with the phones that may watch, and a QR code for the next one. */
export function phonesDialog(login, say) {
  const list = element("ul", {});
  const code = element("div.code", { hidden: true });
  const add = element("button.main", { type: "button" }, strings.addPhone);
  const dialog = element("dialog.phones", { "aria-label": strings.phones },
    element("h2", {}, strings.phones), list, code, add,
    element("button", { type: "button", onclick: () => dialog.close() }, strings.close));
  dialog.addEventListener("close", () => dialog.remove());

  async function draw() {
    const answer = await login.fetch("v1/phones");
    if (!answer.ok) {
      dialog.close();
      return say(answer.status === 409 ? strings.noPhones : strings.mayNot);
    }
    const { phones } = await answer.json();
    list.replaceChildren(...phones.map(({ name }) => element("li", {}, element("span", {}, name),
      element("button", {
        type: "button", "aria-label": `${strings.shutOut}: ${name}`,
        onclick: async () => {
          await login.fetch(`v1/phones/${encodeURIComponent(name)}`, { method: "DELETE" });
          draw();
        },
      }, strings.shutOut))));
    if (!phones.length) list.replaceChildren(element("li", {}, strings.noPhonesYet));
  }

  add.addEventListener("click", async () => {
    const answer = await login.fetch("v1/phones/codes", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ role: "view" }),
    });
    if (!answer.ok) return say(answer.status === 409 ? strings.noPhones : strings.mayNot);
    const made = await answer.json();
    code.replaceChildren(picture(made.qr), element("p", {}, strings.pointAtIt), element("p.link", {}, made.url));
    code.hidden = false;
  });
  return { element: dialog, open: () => { dialog.showModal(); return draw(); } };
}

/** A QR code as a picture: rows of modules, "1" for dark, with four light ones around. */
function picture(rows) {
  const space = "http://www.w3.org/2000/svg";
  const quiet = 4;
  const size = rows.length + 2 * quiet;
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", strings.code);
  const ground = document.createElementNS(space, "rect");
  for (const [name, value] of Object.entries({ width: size, height: size, fill: "#fff" })) ground.setAttribute(name, value);
  const dark = document.createElementNS(space, "path");
  dark.setAttribute("fill", "#000");
  dark.setAttribute("shape-rendering", "crispEdges");
  dark.setAttribute("d", rows.flatMap((row, y) => [...row].map((module, x) =>
    (module === "1" ? `M${x + quiet} ${y + quiet}h1v1h-1z` : ""))).join(""));
  svg.append(ground, dark);
  return svg;
}
