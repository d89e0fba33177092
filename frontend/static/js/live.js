// Replaces parts of the page by those of the same address, fetched again.

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function fetchParts(selector) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) throw new Error(`answered ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const fresh of page.querySelectorAll(selector)) {
    const old = document.getElementById(fresh.id);
    if (old && !old.contains(document.activeElement) && old.innerHTML !== fresh.innerHTML) {
      old.replaceWith(document.adoptNode(fresh));
    }
  }
}

export async function keepFresh(part) {
  const every = Number(part.dataset.live);
  for (;;) {
    await pause(every);
    if (document.hidden) continue;
    try {
      await fetchParts("[data-live]");
    } catch {
      await pause(4 * every);
    }
  }
}
