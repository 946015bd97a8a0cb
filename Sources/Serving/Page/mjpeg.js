// The pictures one by one, where WebRTC does not work. By fetch, so that the log-in goes along as a header.

/**
 * Shows the pictures of `path` in `image` until `signal` ends it.
 * @param {(time: number) => void} shown is told of each picture
 */
export async function showPictures(login, path, image, signal, shown) {
  const answer = await login.fetch(path, { signal });
  if (!answer.ok) throw new Error(await answer.text());
  const reader = answer.body.getReader();
  let buffer = new Uint8Array(0);
  let url = null;
  const decoder = new TextDecoder("latin1");
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const joined = new Uint8Array(buffer.length + value.length);
      joined.set(buffer), joined.set(value, buffer.length);
      buffer = joined;
      for (;;) {
        // A part's headers are short; its length tells where it ends.
        const head = decoder.decode(buffer.subarray(0, 512));
        const end = head.indexOf("\r\n\r\n");
        const length = Number(/content-length: *(\d+)/i.exec(head.slice(0, end))?.[1]);
        if (end < 0 || !(length >= 0) || buffer.length < end + 4 + length) break;
        const picture = new Blob([buffer.slice(end + 4, end + 4 + length)], { type: "image/jpeg" });
        buffer = buffer.slice(end + 4 + length);
        const former = url;
        image.src = url = URL.createObjectURL(picture);
        if (former) URL.revokeObjectURL(former);
        shown(performance.now());
      }
      if (buffer.length > 16e6) throw new Error("no picture within 16 MB");
    }
  } finally {
    if (url) URL.revokeObjectURL(url);
  }
}
