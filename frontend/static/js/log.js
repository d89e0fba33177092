// Shows a log while it grows. Bytes become text here and only ever text: never markup.
import { pause } from "./live.js";

const CHUNK = 262144;
const WAIT_MS = 10000;
const MOST_CHARACTERS = 2000000;
const SHORTEST_ROUND_MS = 500;

export function followLog(view) {
  const follow = document.querySelector("[data-log-follow]");
  const status = document.querySelector("[data-log-status]");
  const decoder = new TextDecoder();
  let offset = 0;
  let shown = 0;
  let wake = () => {};
  document.querySelector("[data-log-follow-label]").hidden = false;
  view.textContent = "";

  function add(text) {
    if (!text) return;
    view.append(text);
    shown += text.length;
    while (shown > MOST_CHARACTERS && view.childNodes.length > 1) {
      shown -= view.firstChild.textContent.length;
      view.firstChild.remove();
    }
    if (follow.checked) view.scrollTop = view.scrollHeight;
  }

  async function round() {
    const query = new URLSearchParams({ offset, limit: CHUNK, wait_ms: WAIT_MS });
    const answer = await fetch(`${view.dataset.log}?${query}`);
    if (!answer.ok) {
      const problem = await answer.json();
      throw new Error(problem.detail);
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const final = answer.headers.get("X-Log-Final") === "true";
    offset = Number(answer.headers.get("X-Log-Next-Offset"));
    add(decoder.decode(bytes, { stream: !final }));
    return final;
  }

  async function run() {
    for (;;) {
      const began = performance.now();
      try {
        if (await round()) {
          status.textContent = offset ? status.dataset.complete : status.dataset.empty;
          if (document.querySelector("[data-job-ended]")) return;
          await new Promise((woken) => (wake = woken));
          offset = 0;
          shown = 0;
          view.textContent = "";
        } else {
          status.textContent = offset ? status.dataset.following : status.dataset.waiting;
        }
      } catch (error) {
        status.textContent = `${error.message} ${status.dataset.again}`;
        await pause(3000);
      }
      await pause(Math.max(0, SHORTEST_ROUND_MS - (performance.now() - began)));
    }
  }

  run();
  return { wake: () => wake() };
}
