/** The survey's form: the answer is randomised here, kept by its question, and shown before it is sent. */
import { kept, load } from "./labeldp.js";

const MAX_EPSILON = 1; // no card on this page may cost a respondent more

const find = (id) => document.getElementById(id);
const form = find("survey");
const field = document.querySelector("#private input[type=number], #private select"); // its id names it in the report
const { collector, question } = form.dataset;
const SENT = `survey:sent:${question}`;
const card = find(form.dataset.card);
/** Close the form, and say why. */
function refuse(error) {
  find("problem").textContent = `This form cannot protect your answer, and sends nothing. ${error.message}`;
  throw error;
}
if (!field?.id) refuse(new Error("Its private question needs an input of type number, or a select, with an id."));
const client = await load(card.textContent, { maxEpsilon: MAX_EPSILON, sha256: card.dataset.sha256 }).catch(refuse);
const percent = Math.round(100 / (1 + Math.exp(-client.epsilon)));
const digits = Math.max(0, 3 - Math.ceil(Math.log10(client.bounds[1] - client.bounds[0])));
const amount = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: digits });
const [low, high] = client.bounds.map((bound) => amount.format(bound));

/** Show one part of the page, and move the reader there. */
function show(id) {
  for (const part of ["survey", "review", "done"]) find(part).hidden = part !== id;
  if (id !== "survey") find(id).focus();
}

/** The named answers of the form: all but the private one, which has no name. */
const publicAnswers = () => Object.fromEntries(new FormData(form));
const report = () => JSON.stringify({ ...publicAnswers(), [field.id]: kept(question).value, card: kept(question).card });

/** Show what will be sent; `answer` is what was typed just now, and is known to nobody after this page is closed. */
function review(answer) {
  const { value } = kept(question);
  const sent = document.createElement("strong");
  sent.textContent = amount.format(value);
  find("values").replaceChildren(answer === null ? "Drawn before on this device: " : `Your answer ${answer} → `, sent);
  find("meaning").textContent =
    `${amount.format(value)} is sent, and your answer is not. From it nobody can be more than ${percent} % sure ` +
    "which of any two answers is yours, if both were equally likely before. The number may be far off, even below " +
    "zero: only the average over many people means anything.";
  const rows = Object.entries(publicAnswers()).flatMap(([name, text]) => {
    const [term, description] = [document.createElement("dt"), document.createElement("dd")];
    const field = form.elements[name];
    term.textContent = field.labels[0].textContent;
    description.textContent = field.selectedOptions?.[0].textContent ?? text;
    return [term, description];
  });
  find("public").replaceChildren(...rows);
  find("body").textContent = JSON.stringify(JSON.parse(report()), null, 1);
  find("sending").textContent = "";
  show("review");
}

/** Close the private question where a number was drawn: another answer would change nothing. */
function close() {
  const isDrawn = kept(question) !== null;
  find("private").disabled = isDrawn; // with all fields in it: those are not sent, even if they have a name
  find("hint").textContent = isDrawn
    ? `The number ${amount.format(kept(question).value)} was drawn for this question. It stays: drawing again would say more about you.`
    : field.type === "number" ? `Anything from ${low} to ${high}; less or more counts as that.` : "";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  find("problem").textContent = "";
  const answer = kept(question) !== null ? null : field.value === "" ? NaN : Number(field.value);
  if (!form.checkValidity() || Number.isNaN(answer)) {
    find("problem").textContent = "Please answer all questions; the private one with a number.";
    return;
  }
  try {
    await client.answer(question, answer); // drawn and kept, then shown
  } catch {
    find("problem").textContent = "This browser keeps nothing, so your answer could be asked for twice. Nothing was sent.";
    return;
  }
  const shown = answer === null ? null : (field.selectedOptions?.[0].text ?? amount.format(answer));
  field.value = "";
  close();
  review(shown);
});

find("back").addEventListener("click", () => show("survey"));

find("send").addEventListener("click", async () => {
  find("send").disabled = true;
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(collector, { method: "POST", headers, body: report(), credentials: "omit" });
    if (!response.ok) throw new Error(response.statusText);
    localStorage.setItem(SENT, "yes");
    show("done");
  } catch {
    find("sending").textContent = "Not sent: there is no connection. Your number is kept; try again later.";
  }
  find("send").disabled = false;
});

find("promise").textContent =
  `Privacy: ε = ${client.epsilon.toFixed(2)} for your answer, checked in this browser by the card ${client.checksum.slice(7, 19)}`;
find("problem").textContent = "";
find("draw").disabled = false;
close();
if (localStorage.getItem(SENT)) show("done");

// The page opens again without a connection.
navigator.serviceWorker?.register("offline.js").catch(() => {});
