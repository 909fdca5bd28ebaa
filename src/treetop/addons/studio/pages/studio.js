"use strict";
// Pages work without this: it only shows at once what a form would show when it is sent.

const wait = 250;

function fields(form) {
  return new URLSearchParams(new FormData(form));
}

async function refresh(form, extra) {
  const target = document.getElementById(form.dataset.target);
  const asked = fields(form);
  for (const [name, value] of Object.entries(extra || {})) asked.set(name, value);
  const turn = (form.turn = (form.turn || 0) + 1);
  target.classList.add("working");
  try {
    const answer = await fetch(form.dataset.live, { method: "POST", body: asked });
    const text = await answer.text();
    if (turn !== form.turn || answer.status === 204) return null; // a later question is on its way
    target.innerHTML = text;
    return target;
  } catch {
    return null; // the studio was stopped; what is shown stays
  } finally {
    if (turn === form.turn) target.classList.remove("working");
  }
}

function later(form, act) {
  clearTimeout(form.timer);
  form.timer = setTimeout(act, wait);
}

for (const form of document.querySelectorAll("form[data-live]:not([data-accuracy])")) {
  form.addEventListener("input", () => later(form, () => refresh(form)));
}

for (const form of document.querySelectorAll("form[data-how]")) { // only the controls of the chosen way are shown
  const parts = form.querySelectorAll("[data-of]");
  const choose = () => { for (const part of parts) part.hidden = part.dataset.of !== form.elements.how.value; };
  form.addEventListener("change", choose);
  for (const part of parts) part.addEventListener("input", () => { form.elements.how.value = part.dataset.of; });
  choose();
}

const template = document.getElementById("template");
if (template) {
  const choose = () => { for (const part of document.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== template.value; };
  template.addEventListener("change", choose);
  choose();
}

const knobs = document.querySelector("form[data-accuracy]");
if (knobs) {
  const set = (name, value) => { if (value !== undefined && value !== "") knobs.elements[name].value = value; };
  const moved = async (by) => {
    const target = await refresh(knobs, { by });
    const shown = target && target.querySelector(".looked");
    if (!shown) return;
    if (by !== "epsilon") set("epsilon", shown.dataset.epsilon);
    if (by !== "slider") set("slider", shown.dataset.position);
    if (by !== "error") set("error", shown.dataset.error);
  };
  knobs.addEventListener("input", (event) => {
    const by = event.target.dataset.by;
    later(knobs, () => moved(by === "slider" || by === "error" ? by : "epsilon"));
  });
}

for (const form of document.querySelectorAll("form[data-drop]")) {
  const file = form.querySelector("input[type=file]");
  const over = (on) => form.classList.toggle("over", on);
  form.addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
  form.addEventListener("dragleave", () => over(false));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}

const running = document.querySelector("[data-running]");
if (running) {
  const bar = document.getElementById("progress"), stage = document.getElementById("stage");
  const look = async () => {
    try {
      const now = await (await fetch("progress")).json();
      if (now.state !== "running") { location.reload(); return; }
      bar.value = now.share;
      if (stage.textContent !== now.stage + "…") stage.textContent = now.stage + "…";
    } catch { stage.textContent = "The studio does not answer: was it stopped?"; }
    setTimeout(look, 400);
  };
  setTimeout(look, 200);
}

const working = document.querySelector("[data-working]");
if (working) {
  const seconds = document.getElementById("seconds");
  const again = async () => {
    try {
      const answer = await fetch(location.href, { redirect: "manual" });
      const page = answer.type === "opaqueredirect" ? "" : await answer.text();
      const now = new DOMParser().parseFromString(page, "text/html"), told = now.getElementById("seconds");
      if (!told) { location.replace(location.href); return; }
      seconds.textContent = told.textContent;
      working.querySelector("progress").replaceWith(now.querySelector("progress"));
    } catch { seconds.textContent = "The studio does not answer: was it stopped?"; }
    setTimeout(again, 700);
  };
  setTimeout(again, 300);
}

const print_ = document.querySelector("[data-print]");
if (print_) {
  print_.hidden = false;
  print_.addEventListener("click", () => window.print());
}

const here = document.querySelector(".steps [aria-current]");
if (here) here.scrollIntoView({ inline: "center", block: "nearest" });
