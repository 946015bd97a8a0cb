// Makes elements of the page without markup in strings: what comes from the network is only ever text.

/**
 * @param {string} name the tag, and a class behind a dot
 * @param {Record<string, any>} properties attributes, and functions of events as `onclick`
 * @param {...(Node | string | null)} children
 */
export function element(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Writes a text where it is another one: a reader of screens says what is written anew. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button that is on or off. */
export function toggle(text, isOn, change) {
  const button = element("button", { type: "button", "aria-pressed": String(isOn) }, text);
  button.addEventListener("click", () => {
    const next = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(next));
    change(next, button);
  });
  return button;
}
