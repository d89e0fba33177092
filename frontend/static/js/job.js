// Follows one job: waits at the API until its state changes, then renews the page's parts.
import { fetchParts, pause } from "./live.js";

const RENEW_MS = 5000;
const SHORTEST_ROUND_MS = 1000;

export async function followJob(onChange) {
  for (;;) {
    const facts = document.querySelector("[data-job-state]");
    if ("jobEnded" in facts.dataset) return onChange();
    const began = performance.now();
    try {
      if (!document.hidden) {
        const query = new URLSearchParams({
          wait_ms: String(RENEW_MS),
          unless_state: facts.dataset.jobState,
        });
        const answer = await fetch(`${facts.dataset.jobApi}?${query}`);
        if (answer.ok) {
          const job = await answer.json();
          await fetchParts("[data-live-part]");
          if (job.state !== facts.dataset.jobState) onChange();
        }
      }
    } catch {
      await pause(RENEW_MS);
    }
    await pause(Math.max(0, SHORTEST_ROUND_MS - (performance.now() - began)));
  }
}
