// Makes pages live. Every page works without it.
import { keepFresh } from "./live.js";
import { followJob } from "./job.js";
import { followLog } from "./log.js";
import { estimate } from "./estimate.js";

for (const part of document.querySelectorAll("[data-live]")) keepFresh(part);
for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}
for (const form of document.querySelectorAll("form[data-estimate]")) estimate(form);

const log = document.querySelector("[data-log]");
const follower = log ? followLog(log) : null;
if (document.querySelector("[data-job-state]")) followJob(() => follower?.wake());
