// What a page without scripts cannot do: accept dropped files, draw progress, follow its fields, and say that it is open.
"use strict";
setInterval(() => fetch(`${document.body.dataset.base}/alive`).catch(() => {}), 60000);

for (const bar of document.querySelectorAll("[data-progress]")) {
  const status = bar.querySelector("[data-status]"), meter = bar.querySelector("progress"), stop = bar.querySelector("[data-stop]");
  let shown = "", failures = 0;
  const look = async () => {
    const answer = await fetch(bar.dataset.progress).then((response) => response.json()).catch(() => null);
    if (answer && answer.state !== "running") return location.reload();
    failures = answer ? 0 : failures + 1;
    if (failures > 4) {
      status.textContent = "labeldp was stopped, and does not answer. If anything was charged, the ledger says so.";
      meter.remove();
      stop.hidden = true;
      return;
    }
    if (answer) {
      if (answer.step !== shown) status.textContent = `${shown = answer.step} …`;
      if (answer.percent !== null) meter.value = answer.percent; else meter.removeAttribute("value");
      stop.hidden = !answer.can_stop;
    }
    setTimeout(look, 400);
  };
  setTimeout(look, 400);
}

const zone = document.querySelector("[data-drop]");
if (zone) {
  const status = zone.querySelector("[data-drop-status]"), form = zone.querySelector("form"), input = form.querySelector("[type=file]");
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  addEventListener("dragover", () => zone.classList.add("over-it"));
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) zone.classList.remove("over-it"); });
  addEventListener("drop", (event) => {
    zone.classList.remove("over-it");
    if (event.dataTransfer.files.length !== 1) { status.textContent = "Drop one file."; return; }
    input.files = event.dataTransfer.files;
    status.textContent = `Reading ${input.files[0].name} …`;
    form.submit();
  });
}

// A problem is about what was sent: it goes as soon as its field is changed.
addEventListener("input", ({ target }) => {
  const summary = document.getElementById("summary"), names = [target.dataset.problem ?? target.name];
  if ("choice" in target.dataset) names.push("epsilon"); // the cost follows from all choices
  for (const name of names.filter(Boolean)) {
    for (const field of document.getElementsByName(name)) field.removeAttribute("aria-invalid");
    document.getElementById(`${name}-problem`)?.remove();
    summary?.querySelector(`[data-problem="${CSS.escape(name)}"]`)?.remove();
  }
  if (summary && !summary.querySelector("li")) summary.remove();
});

// What an ε would give, and what a ledger has spent, follow from the fields: the server says it, and no field changes.
const choices = [...document.querySelectorAll("[data-choice]")], limit = document.getElementById("limit");
let asked;
function askFigures() {
  asked?.abort();
  asked = new AbortController();
  const { form } = choices[0], { signal } = asked, typed = new URLSearchParams();
  for (const [name, text] of new FormData(form)) if (choices.some((field) => field.name === name)) typed.set(name, text);
  fetch(`${form.action.replace(/budget$/, "figures")}?${typed}`, { signal })
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer)))
    .then((html) => {
      const parts = new DOMParser().parseFromString(html, "text/html"), exists = "exists" in parts.getElementById("spent").dataset;
      for (const id of ["figures", "spent"]) document.getElementById(id).innerHTML = parts.getElementById(id).innerHTML;
      addButtons(document.getElementById("figures"));
      if (limit !== document.activeElement) limit.disabled = limit.closest("div").hidden = exists;
      document.querySelector("[role=status]").textContent = document.querySelector("#figures figcaption").textContent;
    })
    .catch(() => {}); // a later choice, or a page that is closed
}
for (const field of choices) field.addEventListener("input", askFigures);
limit?.addEventListener("blur", askFigures); // it is not taken away from whoever types into it
if (choices.some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked)) askFigures();

function leave(form, step) {
  const show = document.createElement("input");
  Object.assign(show, { type: "hidden", name: "show", value: step });
  form.append(show);
  form.submit();
}

// What can be typed into a field is a button, which is marked while the field has that value.
function addButtons(part) {
  for (const choice of part.querySelectorAll("[data-fill]")) addButton(choice);
}
function addButton(choice) {
  const button = document.createElement("button"), { fill, into, typed } = choice.dataset;
  const field = [...document.getElementsByName(into)].find((each) => typed === undefined || each.value === typed);
  const mark = () => button.setAttribute("aria-pressed", field.value.trim() === fill);
  Object.assign(button, { type: "button", className: "quiet", textContent: choice.textContent });
  button.addEventListener("click", () => {
    field.value = fill;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    if (!button.isConnected) field.focus(); // it went with the problem
  });
  field.addEventListener("input", mark);
  mark();
  choice.replaceWith(button);
}
addButtons(document);

// A link to another step takes what was typed with it.
const kept = document.querySelector("form[data-keep]");
for (const link of kept ? document.querySelectorAll("a[data-step]") : []) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    leave(kept, link.dataset.step);
  });
}
