// What a page without scripts cannot do: be dropped on, draw a bar as it grows, copy, and say good-bye.
"use strict";
const { key, room } = document.body.dataset;
let page = crypto.randomUUID();
const tell = (path) => {
  const form = new URLSearchParams({ form: key, page });
  return path === "/bye" ? navigator.sendBeacon(room + path, form) : fetch(room + path, { method: "POST", body: form }).catch(() => {});
};
addEventListener("pageshow", () => tell("/alive"));
addEventListener("pagehide", () => { tell("/bye"); page = crypto.randomUUID(); }); // shown again, it is another
setInterval(() => tell("/alive"), 20000);

for (const bar of document.querySelectorAll("[data-progress]")) {
  const words = bar.querySelector("[data-words]"), meter = bar.querySelector("progress"), stop = bar.querySelector("[data-stop]");
  let said = "", silence = 0;
  const look = async () => {
    const answer = await fetch(bar.dataset.progress).then((response) => response.json()).catch(() => null);
    if (answer && answer.state !== "running") return location.reload();
    silence = answer ? 0 : silence + 1;
    if (silence > 4) {
      words.textContent = "labeldp was stopped, and does not answer. If anything was charged, the ledger says so.";
      meter.remove();
      stop.hidden = true;
      return;
    }
    if (answer) {
      if (answer.what !== said) words.textContent = `${said = answer.what} …`;
      if (answer.percent !== null) meter.value = answer.percent; else meter.removeAttribute("value");
      stop.hidden = !answer.can_stop;
    }
    setTimeout(look, 400);
  };
  setTimeout(look, 400);
}

const zone = document.querySelector("[data-drop]");
if (zone) {
  const words = zone.querySelector("[data-drop-words]"), form = zone.querySelector("form"), input = form.querySelector("[type=file]");
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  addEventListener("dragover", () => zone.classList.add("over-it"));
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) zone.classList.remove("over-it"); });
  addEventListener("drop", (event) => {
    zone.classList.remove("over-it");
    if (event.dataTransfer.files.length !== 1) { words.textContent = "Drop one file."; return; }
    input.files = event.dataTransfer.files;
    words.textContent = `Reading ${input.files[0].name} …`;
    form.submit();
  });
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.closest("section").querySelector("code").textContent);
    button.textContent = "Copied";
  });
}

// Fields of the budget that the command line shows as they are typed; choices.js fills in ε.
const quoted = (text) => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
for (const field of document.querySelectorAll("[data-option]")) {
  const [option, leaves] = field.dataset.option.split(" ");
  field.addEventListener("input", () => {
    for (const place of document.querySelectorAll(`${leaves ? `[data-leaves=${leaves}] ` : ""}[data-command]`)) {
      const gap = " \\\n  ", value = field.value.trim();
      const lines = place.dataset.command.split(gap).filter((line) => !line.startsWith(`${option} `));
      if (value) lines.splice(option === "-o" ? 1 : lines.length, 0, `${option} ${quoted(value)}`);
      place.dataset.command = lines.map((line) => option === "-o" && line.startsWith("--report ")
        ? `--report ${quoted(`${value}.report.html`)}` : line).join(gap);
    }
    document.querySelector("[data-choice=epsilon]").dispatchEvent(new Event("input", { bubbles: true }));
  });
}
