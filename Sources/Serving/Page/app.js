// The page: log-in, the cameras, and one camera.

import { Alerts } from "./alerts.js";
import { element, toggle, write } from "./elements.js";
import { Login } from "./login.js";
import { oneTimeCode, pairingView, phonesDialog } from "./phones.js";
import { Player } from "./player.js";
import { strings } from "./strings.js";
import { viewersDialog } from "./viewers.js";

/** The pause before the list asks again for a picture that a camera does not have yet, in milliseconds. */
const snapshotPause = 3000;

const root = document.getElementById("app");
const login = new Login();
const alerts = new Alerts(login, () => shown?.uncover?.());
let shown = null;
let wakeLock = null;

function show(view) {
  shown?.close?.();
  shown = view;
  root.replaceChildren(view.element);
  if (view.hasAlerts) {
    // Within the view: what is in full screen hides all else.
    view.element.prepend(alerts.element);
    // The alarm of a view that is closed while it sounds leaves it without touch.
    alerts.element.inert = false;
    alerts.start();
  }
  root.setAttribute("aria-busy", "false");
}

/** The names of all cameras, those that are away too; or null if a log-in is needed. */
async function cameras() {
  const answer = await login.fetch("healthz");
  if (answer.status === 401 || answer.status === 403) return null;
  return (await answer.json()).cameras.map((camera) => camera.name);
}

/** The camera that the address names. */
function wantedName() {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
}

async function begin() {
  if (oneTimeCode() !== null) {
    return show(pairingView(login, () => {
      // The code is of no use any more, and must not come back with the address.
      history.replaceState(null, "", location.pathname);
      begin();
    }));
  }
  try {
    const names = await cameras();
    if (names === null) return show(loginView(login.isThere ? strings.loginRefused : null));
    if (!names.length) throw new Error("no camera");
    const wanted = wantedName();
    if (names.includes(wanted)) return show(cameraView(wanted, names));
    if (names.length === 1) return show(cameraView(names[0], names));
    show(listView(names));
  } catch {
    show(waitingView());
    setTimeout(begin, 2000);
  }
}

function waitingView() {
  return { element: element("p.login", { role: "status" }, strings.causes.unreachable) };
}

function loginView(complaint) {
  const name = element("input", { name: "username", autocomplete: "username", required: true, autocapitalize: "off" });
  const password = element("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const remember = element("input", { type: "checkbox", checked: true });
  const form = element("form.login", {
    onsubmit: async (event) => {
      event.preventDefault();
      login.set(name.value, password.value, remember.checked);
      const names = await cameras().catch((error) => error);
      if (Array.isArray(names)) return begin();
      login.forget();
      show(loginView(names === null ? strings.loginRefused : strings.loginLater));
    },
  },
  element("h1", {}, strings.title),
  complaint ? element("p.complaint", { role: "alert" }, complaint) : null,
  element("label", {}, strings.name, name), element("label", {}, strings.password, password),
  element("label.line", {}, remember, strings.remember),
  element("button.main", { type: "submit" }, strings.logIn));
  return { element: form };
}

function listView(names) {
  const urls = [];
  let isClosed = false;
  /** Asks for a picture until there is one: a camera that starts, or is away, has none yet. */
  async function fill(image, name) {
    while (!isClosed) {
      const answer = await login.fetch(`cameras/${encodeURIComponent(name)}/snapshot.jpg`).catch(() => null);
      if (answer?.ok) {
        const picture = await answer.blob();
        if (isClosed) return;
        urls.push(URL.createObjectURL(picture));
        image.src = urls.at(-1);
        return;
      }
      if (answer && answer.status !== 503) return;
      await new Promise((resolve) => setTimeout(resolve, snapshotPause));
    }
  }
  const items = names.map((name) => {
    const image = element("img", { alt: "" });
    fill(image, name).catch(() => {});
    return element("li", {}, element("button", {
      type: "button", onclick: () => { location.hash = encodeURIComponent(name); },
    }, image, element("span", {}, name)));
  });
  const notice = element("p", { role: "status" });
  const view = element("section.cameras", {}, element("h1", {}, strings.cameras), element("ul", {}, ...items),
    element("div.tools", {}, ...alerts.buttons((dialog) => {
      view.append(dialog.element);
      dialog.open();
    }, (text) => { notice.textContent = text; })), notice);
  return {
    element: view,
    hasAlerts: true,
    uncover: () => closeDialogs(view),
    close: () => {
      isClosed = true;
      urls.forEach((url) => URL.revokeObjectURL(url));
    },
  };
}

function cameraView(name, names) {
  const video = element("video", { playsinline: true, autoplay: true, muted: true, "aria-label": name });
  video.muted = true;
  const image = element("img", { alt: name, hidden: true });
  const state = element("span.state.connecting", { role: "status" }, strings.connecting);
  // Shown while it has words: readers of screens say what changes in an element that is there before.
  const notice = element("p.notice", { role: "status" });
  const figures = element("p.figures", { hidden: true });
  const meter = element("meter", { min: -60, max: 0, value: -60, "aria-label": strings.level });
  const sound = element("button", {
    type: "button",
    onclick: () => {
      video.muted = !video.muted;
      player.play();
      draw(player);
    },
  });
  const hearing = element("div.sound", {}, sound, meter);
  const arm = toggle(strings.arm, false, async (isOn, button) => {
    if (isOn) await player.arm(); else await player.alarm.disarm();
    button.textContent = isOn ? strings.disarm : strings.arm;
  });
  const night = toggle(strings.night, document.documentElement.classList.contains("night"), (isOn) => {
    document.documentElement.classList.toggle("night", isOn);
    localStorage.setItem("nightjar-night", isOn ? "1" : "");
  });
  const touch = element("button.main.touch", { type: "button", hidden: true, onclick: () => player.play() }, strings.touch);
  const picture = element("div.picture", {}, video, image, notice, figures, touch);
  const button = (text, action) => element("button", { type: "button", onclick: action }, text);
  const tools = element("div.tools", {}, arm, ...alerts.buttons(open, say), night,
    button(strings.fullScreen, () => {
      if (document.fullscreenElement) return document.exitFullscreen();
      // With its buttons, so that the alarm can be ended there.
      if (view.requestFullscreen) return view.requestFullscreen().catch(() => say(strings.noFullScreen));
      return video.webkitEnterFullscreen ? video.webkitEnterFullscreen() : say(strings.noFullScreen);
    }),
    "requestPictureInPicture" in video
      ? button(strings.pictureInPicture, () => video.requestPictureInPicture().catch(() => {})) : null,
    button(strings.snapshot, async () => { if (!await saveSnapshot(name)) say(strings.notSaved); }),
    button(strings.rotate, async () => { if (!await rotate(name)) say(strings.mayNot); }),
    button(strings.viewers, () => open(viewersDialog(login, name))),
    button(strings.phones, () => open(phonesDialog(login, say))),
    toggle(strings.figures, false, (isOn) => { figures.hidden = !isOn; }),
    button(strings.logOut, () => {
      // The session is ended by the log-in that began it.
      player.close();
      alerts.stop();
      alerts.push.leave();
      login.forget();
      location.hash = "";
      begin();
    }));
  const header = element("header", {},
    names.length > 1 ? button("‹ " + strings.back, () => { location.hash = ""; }) : null,
    element("h1", {}, name), state);
  const view = element("section.player", {}, header, picture, element("div.controls", {}, hearing, tools));
  const dialog = element("div.dialog", {
    role: "alertdialog", "aria-modal": "true", "aria-labelledby": "alarm-title", "aria-describedby": "alarm-cause", hidden: true,
  }, element("h2", { id: "alarm-title" }, strings.alarm), element("p", { id: "alarm-cause" }),
    element("button", { type: "button", onclick: () => { player.alarm.acknowledge(); draw(player); } },
      strings.acknowledge));
  view.append(dialog);

  /** Opens a dialog, which goes with this view. */
  function open(dialog) {
    view.append(dialog.element);
    dialog.open();
  }

  /** Says something for some seconds, also while the state changes: a page that is being opened still connects. */
  let [said, silence] = ["", null];
  function say(text) {
    clearTimeout(silence);
    said = text;
    draw(player);
    silence = setTimeout(() => {
      said = "";
      draw(player);
    }, 4000);
  }

  /** A phone shows nothing of the page beside its own full screen, and a list would hide alarm and alerts. */
  function uncover() {
    video.webkitExitFullscreen?.();
    closeDialogs(view);
  }

  /** What had the focus before the alarm. */
  let former = null;
  /** `true` once another view is shown: what comes late must not keep its screen awake. */
  let isClosed = false;

  function draw(player) {
    if (isClosed) return;
    const isDead = player.state === "dead";
    state.className = `state ${player.state === "pictures" ? "live" : player.state}`;
    write(state, {
      live: strings.live, pictures: strings.live, connecting: strings.connecting,
      dead: player.isConnected ? strings.trouble : strings.reconnecting,
    }[player.state]);
    const cause = isDead ? strings.causes[player.cause] ?? "" : "";
    write(notice, said || cause || (player.reason ? strings.fallback[player.reason] : ""));
    image.hidden = player.reason === null;
    video.hidden = player.reason !== null;
    hearing.hidden = player.reason !== null;
    touch.hidden = !player.needsTouch;
    sound.disabled = player.hasSound === false;
    meter.hidden = sound.disabled;
    // The words say what a touch does: a state beside them would say the contrary.
    write(sound, sound.disabled ? strings.noSound : video.muted ? strings.unmute : strings.mute);
    const rings = player.alarm.isSounding;
    write(dialog.querySelector("p"), isDead ? cause : strings.isBack);
    if (rings && dialog.hidden) former = document.activeElement;
    // What is inert loses the focus, and takes none.
    for (const part of view.children) if (part !== dialog) part.inert = rings;
    if (rings && dialog.hidden) {
      uncover();
      dialog.hidden = false;
      dialog.querySelector("button").focus();
    } else if (!rings && !dialog.hidden) {
      dialog.hidden = true;
      former?.focus();
    }
    keepAwake(player.state === "live" || player.state === "pictures" || player.alarm.isArmed);
  }

  const player = new Player(name, login, video, image, draw);
  const timer = setInterval(() => tellFigures(player, figures, meter), 500);
  const look = () => { if (!document.hidden) draw(player); };
  document.addEventListener("visibilitychange", look);
  draw(player);
  player.start();
  // For tests, and for who is curious.
  window.nightjar = player;
  return {
    element: view,
    hasAlerts: true,
    uncover,
    close: (isLeaving) => {
      isClosed = true;
      clearInterval(timer);
      clearTimeout(silence);
      document.removeEventListener("visibilitychange", look);
      player.close(isLeaving);
      keepAwake(false);
    },
  };
}

function closeDialogs(view) { for (const dialog of view.querySelectorAll("dialog")) dialog.close(); }

/** The last figures, of one session. */
let before = null;

async function tellFigures(player, figures, meter) {
  const statistics = await player.connection?.getStats().catch(() => null);
  if (!statistics) return;
  const lines = [];
  for (const report of statistics.values()) {
    if (report.type !== "inbound-rtp") continue;
    if (report.kind === "audio" && report.audioLevel !== undefined) {
      meter.value = report.audioLevel > 0 ? Math.max(-60, 20 * Math.log10(report.audioLevel)) : -60;
    }
    if (report.kind !== "video") continue;
    if (before?.ssrc === report.ssrc && before.bytesReceived <= report.bytesReceived && before.timestamp < report.timestamp) {
      const seconds = (report.timestamp - before.timestamp) / 1000;
      lines.push(strings.bitrate(Math.round((report.bytesReceived - before.bytesReceived) * 8 / seconds / 1000)));
      lines.push(strings.rate(Math.round((report.framesDecoded - before.framesDecoded) / seconds)));
      const emitted = report.jitterBufferEmittedCount - before.jitterBufferEmittedCount;
      const delay = report.jitterBufferDelay - before.jitterBufferDelay;
      if (emitted > 0) lines.push(strings.delay(Math.round(delay / emitted * 1000)));
    }
    if (report.packetsLost > 0) lines.push(strings.lost(report.packetsLost));
    before = report;
  }
  if (lines.length) figures.textContent = lines.join("\n");
}

/** Saves a picture as a file; false if none came. */
async function saveSnapshot(name) {
  const answer = await login.fetch(`cameras/${encodeURIComponent(name)}/snapshot.jpg`).catch(() => null);
  if (!answer?.ok) return false;
  const url = URL.createObjectURL(await answer.blob());
  const time = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  element("a", { href: url, download: `${name}-${time}.jpg` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return true;
}

/** Turns the camera by a quarter; false if this log-in may not. */
async function rotate(name) {
  const path = `v1/cameras/${encodeURIComponent(name)}`;
  try {
    const status = await login.fetch(`${path}/status`).then((answer) => answer.json());
    const { degrees, mirrored } = status.orientation;
    const answer = await login.fetch(`${path}/orientation`, {
      method: "PUT", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ degrees: (degrees + 90) % 360, mirrored }),
    });
    return answer.ok;
  } catch {
    return false;
  }
}

/** Keeps the screen on while pictures come. */
async function keepAwake(isWanted) {
  if (!("wakeLock" in navigator)) return;
  try {
    if (isWanted && !document.hidden) {
      if (wakeLock && !wakeLock.released) return;
      wakeLock = await navigator.wakeLock.request("screen");
    } else if (!isWanted) {
      await wakeLock?.release();
      wakeLock = null;
    }
  } catch {
    // A phone that saves power refuses.
  }
}
document.documentElement.classList.toggle("night", localStorage.getItem("nightjar-night") === "1");
addEventListener("hashchange", begin);
addEventListener("pagehide", () => shown?.close?.(true));
// A page that comes back as it was left.
addEventListener("pageshow", (event) => { if (event.persisted) begin(); });
begin();
