// Asks for the price again while the form changes.
const SETTLED_MS = 250;

export function estimate(form) {
  const target = document.getElementById("estimate");
  let timer = 0;
  let round = 0;

  async function ask() {
    const own = ++round;
    const sent = new FormData(form);
    const query = new URLSearchParams();
    for (const name of ["memory_gib", "compute_percent", "form", "gpu_model"]) {
      query.set(name, sent.get(name) ?? "");
    }
    const answer = await fetch(`${form.dataset.estimate}?${query}`);
    if (!answer.ok || own !== round) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    target.replaceChildren(...page.body.childNodes);
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask().catch(() => {}), SETTLED_MS);
  });
}
