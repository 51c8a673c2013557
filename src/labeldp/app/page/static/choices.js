/* What an ε would give, live: the formulas of labeldp's `preview`, for labels spread evenly over the bounds.

   The table in [data-choices] comes from the library (evidence/choices.py), which also wrote the page as it is
   without this file. Fields are marked data-choice="epsilon" (rows, low, high, wanted, limit, left, kind, score, spent); what there
   is no field for, and an ε while that field is empty, stands beside the table, as data-rows and so on. What stands in
   [data-example] is shown while it is. [data-command] is a command with gaps such as {epsilon}; [data-price] is a bar of 100 that grows to what is spent with this release.
   Nothing is sent or loaded. */
(() => {
  "use strict";

  // ---- numbers for people, as accounts/numbers.py writes them ---------------------------------------------

  const general = (value, digits) => {
    let text = value.toPrecision(digits);
    if (/e/.test(text) || (value !== 0 && Math.abs(value) < 1e-4)) {
      const [digitsOf, power] = value.toExponential(digits - 1).split("e");
      return `${digitsOf.replace(/\.?0+$/, "")}e${power[0]}${power.slice(1).padStart(2, "0")}`;
    }
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  };
  const grouped = (value) => value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");

  function number(value, digits = 4) {
    const size = Math.abs(value);
    if (!Number.isFinite(size)) return value < 0 ? "−inf" : "inf";
    const rounded = Number(size.toPrecision(digits));
    let text = general(size, digits);
    if (size >= 1e-4 && size < 1e9 && rounded >= 10 ** (digits - 1)) text = grouped(rounded);
    return value < 0 && text !== "0" ? `−${text}` : text;
  }

  function percent(share) {
    if (share > 0.999 && share < 1) return "over 99.9 %";
    if (share > 0 && share < 0.001) return "under 0.1 %";
    const digits = share < 0.0995 || share > 0.9905 ? 1 : 0;
    return `${(100 * share).toFixed(digits)} %`.replace(".0 %", " %");
  }

  function times(epsilon) {
    const factor = Math.exp(epsilon);
    if (factor > 1e6) return "over a million ×";
    const digits = factor < 10 ? 2 : factor < 100 ? 1 : 0;
    const [whole, part] = (Math.ceil(factor * 10 ** digits - 1e-9) / 10 ** digits).toFixed(digits).split(".");
    return `${grouped(Number(whole))}${part ? `.${part}` : ""}×`;
  }

  function roundedUp(amount, digits) {
    const text = amount.toPrecision(digits);
    const up = Number(text) < amount ? Number(text) + 10 ** (Math.floor(Math.log10(amount)) - digits + 1) : Number(text);
    return general(up, digits);
  }

  const atMost = (guess, epsilon) => guess / (guess + (1 - guess) * Math.exp(-epsilon));
  const fill = (text, figures) => text.replace(/\{(\w+)\}/g, (all, name) => figures[name] ?? all);

  // ---- figures, as evidence/previews.py computes them -------------------------------------------------------

  function between(x, xs, ys) {
    const k = xs.findIndex((place) => place > x);
    if (k === 0) return ys[0];
    if (k < 0) return ys[ys.length - 1];
    const part = (x - xs[k - 1]) / (xs[k] - xs[k - 1]);
    return ys[k - 1] + part * (ys[k] - ys[k - 1]);
  }
  const places = (values) => values.map((_, k) => k);

  function unitNoise(table, epsilon) {
    const [least, most] = table.range.map(Math.sqrt), last = table.noise.length - 1;
    const place = (last * (Math.sqrt(epsilon) - least)) / (most - least);
    return Math.exp(between(place, places(table.noise), table.noise.map(Math.log))) / epsilon;
  }

  const quantile = (sorted, part) => between(part * (sorted.length - 1), places(sorted), sorted);

  function keptInSuite(table, power) {
    const place = Math.log(power), { margin, beyond, fewest } = table.kept_rules;
    const near = table.kept.filter(([xs]) => xs[0] - margin <= place && place <= xs[xs.length - 1] + beyond);
    if (near.length < fewest * table.kept.length) return null;
    const shares = near.map(([xs, ys]) => between(place, xs, ys)).sort((a, b) => a - b);
    const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(shares, part));
    return { middle, low, high, tables: near.length };
  }

  function outlook(table, { rows, low, high, epsilon }) {
    const width = high - low, label = width * unitNoise(table, epsilon);
    const held = Math.min(Math.max(Math.floor(rows / table.score_rules.held_out), 1), table.score_rules.most_rows);
    const scoreNoise = 2 / epsilon / held; // of a mean of squares beside that of errors, in squared widths
    const groups = Object.entries(table.groups).map(([name, count]) => [name, label / Math.sqrt(count)]);
    return {
      label,
      ...Object.fromEntries(groups),
      mean: label / Math.sqrt(rows),
      curator_mean: (width * Math.SQRT2) / epsilon / rows,
      score: 24 * scoreNoise < 1 ? width * Math.sqrt(2 * scoreNoise) : Infinity,
      kept: keptInSuite(table, rows * epsilon),
    };
  }

  function needed(table, choice, name) {
    const budgets = [...new Set([...table.curve, choice.epsilon])].sort((a, b) => a - b);
    const errors = budgets.map((epsilon) => Math.log(outlook(table, { ...choice, epsilon })[name]));
    const goal = Math.log(choice.wanted);
    if (errors[errors.length - 1] > goal) return null;
    let first = errors.length;
    while (first > 0 && errors[first - 1] <= goal) first -= 1;
    if (first === 0) return budgets[0];
    const [a, b] = [errors[first - 1], errors[first]], logs = budgets.map(Math.log);
    return Math.exp(logs[first - 1] + ((a - goal) / (a - b)) * (logs[first] - logs[first - 1]));
  }

  /* What a person is exposed to: by this release and its score, which a ledger charges, and with what it has spent. */
  function costs(table, choice) {
    const sum = (...amounts) => Number(amounts.reduce((a, b) => a + b).toPrecision(12)); // 0.1 + 0.2 is 0.3
    const people = table.rows_per_person, spent = choice.spent || 0;
    const now = sum(people * choice.epsilon), score = sum(people * (choice.score || 0));
    return { now, score, spent, cost: sum(now, score), total: sum(now, score, spent) };
  }

  // ---- words, filled into the library's sentences -----------------------------------------------------------

  function amount(table, epsilon) {
    if (epsilon === null) return `ε beyond ${Math.max(...table.curve)}`;
    return epsilon <= table.curve[0] ? `ε of ${number(epsilon, 2)} or less` : `ε of about ${number(epsilon, 2)}`;
  }

  function texts(table, choice) {
    const { rows, low, high, epsilon, wanted } = choice, figures = outlook(table, choice);
    const { certain, least_power, roomy_power, spread } = table.caution_rules;
    const names = Object.keys(table.names).filter((name) => !(table.groups[name] > rows));
    const notes = table.texts.notes, kept = figures.kept;
    const left = choice.left || choice.left === 0 ? choice.left : choice.limit; // of a new ledger, all of it
    const { now, score, spent, cost, total } = costs(table, choice), half = atMost(0.5, total);
    const odds = {
      epsilon: roundedUp(total, 4), times: times(total), people: (100 * half).toFixed(0),
      half: percent(half), low: percent(1 - half), rare: percent(atMost(0.01, total)),
    };
    const amounts = { now: roundedUp(now, 4), score: score ? roundedUp(score, 4) : "", spent: spent ? choice.told : "" };
    const parts = Object.keys(amounts).filter((name) => amounts[name]).map((name) =>
      fill(table.texts.parts[name], { amount: amounts[name] }));
    const holds = {
      weak: half >= certain,
      few: rows * epsilon < least_power,
      noisy: figures.mean >= spread * (high - low),
      loose: rows * epsilon < roomy_power,
      limit: cost > left,
    };
    const sizes = {
      epsilon: roundedUp(epsilon, 4), rows: grouped(rows), power: number(rows * epsilon, 3), limit: choice.limit, left,
      mean: number(figures.mean, 3), spread: number(spread * (high - low), 3),
    };
    const cells = Object.fromEntries(names.map((name) => [name, `±${number(figures[name], 3)}`]));
    cells.score = Number.isFinite(figures.score) ? number(figures.score, 3) : "nothing";
    cells.kept = "not measured";
    if (kept) cells.kept = `${percent(kept.middle)} (${(100 * kept.low).toFixed(0)}–${(100 * kept.high).toFixed(0)})`;
    const told = [
      fill(notes.basis, { labels: notes.even }),
      fill(notes.score, { held: grouped(Math.floor(rows / table.score_rules.held_out)) }),
      kept ? fill(notes.model, { tables: kept.tables }) : notes.unknown,
    ];
    if (wanted > 0) {
      const needs = names.map((name) => `${table.names[name]} needs ${amount(table, needed(table, choice, name))}`);
      told.push(`For ±${number(wanted)}: ${needs.join("; ")}.`);
    }
    return {
      times: odds.times,
      together: parts.length > 1 ? fill(table.texts.together, { epsilon: odds.epsilon, parts: parts.join("; ") }) : "",
      odds: fill(table.texts.odds, odds),
      example: fill(table.texts.example, odds),
      people: fill(table.texts.people, odds),
      span: fill(table.texts.span, { low: number(low), high: number(high) }),
      cells,
      cautions: Object.keys(holds).filter((name) => holds[name]).map((name) =>
        fill(table.texts.cautions[name], { ...sizes, ...{ weak: odds, limit: { epsilon: roundedUp(cost, 4) } }[name] })),
      notes: told,
    };
  }

  window.labeldpChoices = { number, percent, times, roundedUp, outlook, needed, texts };

  // ---- the page ----------------------------------------------------------------------------------------------

  const root = document.querySelector("[data-choices]");
  if (!root) return;
  const table = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const fields = [...document.querySelectorAll("[data-choice]")];
  const status = root.querySelector("[role=status]");

  function element(name, attributes = {}, ...children) {
    const svg = ["svg", "circle"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // a budget with a decimal comma means the same; other numbers may have commas between thousands
  const pointed = (field) => {
    const text = field.value.trim();
    return ["epsilon", "score", "limit"].includes(field.dataset.choice) ? text.replace(/^(\d*),(\d+)$/, "$1.$2") : text;
  };

  function written(name) {
    const given = fields.filter((field) => field.dataset.choice === name);
    const field = given.find((each) => each.type !== "radio" || each.checked);
    return field ? pointed(field) : (root.dataset[name] ?? "");
  }

  function problem({ rows, low, high, epsilon }) {
    const [least, most] = table.range;
    if (!(epsilon >= least && epsilon <= most)) return `ε must lie between ${least} and ${most}.`;
    if (!(Number.isInteger(rows) && rows > 0)) return "Rows must be a positive integer.";
    if (!(high > low && Number.isFinite(high - low))) return "The lower bound must lie below the upper one.";
    return "";
  }

  const sliders = fields.filter((field) => "slider" in field.dataset).map((field) => {
    const stops = table.stops[field.dataset.choice];
    const name = field.labels && field.labels.length ? field.labels[0].textContent.trim() : field.dataset.choice;
    const slider = element("input", {
      type: "range", min: 0, max: stops.length - 1, step: 1, class: "choices-slider", "aria-label": `${name}, slider`,
    });
    slider.addEventListener("input", () => {
      field.value = stops[slider.value];
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    field.before(slider);
    return () => {
      const value = Number(pointed(field) || root.dataset[field.dataset.choice]);
      if (!(value > 0)) return;
      const far = stops.map((stop) => Math.abs(Math.log(stop / value)));
      slider.value = far.indexOf(Math.min(...far));
      slider.setAttribute("aria-valuetext", field.value || "not chosen yet");
    };
  });

  const people = Array.from({ length: 100 }, (_, k) =>
    element("circle", { cx: (k % 10) * 10 + 5, cy: Math.floor(k / 10) * 10 + 5, r: 3.6 }));
  root.querySelector("figure").prepend(
    element("svg", { class: "choices-people", viewBox: "0 0 100 100", "aria-hidden": "true" }, ...people));

  const cells = new Map();
  for (const row of root.querySelectorAll("[data-figure]")) {
    const cell = row.querySelector("td"), value = element("span", {}, cell.textContent);
    const track = element("span", { class: "choices-track", "aria-hidden": "true" });
    cell.replaceChildren(value, track);
    cells.set(row.dataset.figure, { row, value, track });
  }
  const legend = "Marks are powers of ten; the line is the width of the bounds.";
  root.querySelector("caption").append(element("small", {}, legend));
  const scale = element("span", { class: "choices-track choices-scale" });
  cells.get("kept").row.before(
    element("tr", { "aria-hidden": "true" }, element("td"), element("td", {}, element("span"), scale)));

  function mark(kind, from, to = from) {
    const made = element("span", { class: `choices-${kind}` });
    made.style.setProperty("left", `${100 * from}%`); // not an attribute: a strict policy allows it
    if (to !== from) made.style.setProperty("width", `${100 * (to - from)}%`);
    return made;
  }

  function draw(choice, figures) {
    const right = Math.round(100 * atMost(0.5, costs(table, choice).total));
    people.forEach((person, k) => person.setAttribute("class", k < 50 ? "luck" : k < right ? "gain" : "hidden-one"));
    const width = choice.high - choice.low, errors = Object.keys(table.names).concat("score");
    const sizes = errors.map((name) => figures[name]).concat(width).filter(Number.isFinite).map(Math.log10);
    const least = Math.floor(Math.min(...sizes)), most = Math.ceil(Math.max(...sizes) + 1e-9);
    const place = (size) => (Math.log10(size) - least) / (most - least);
    const powers = Array.from({ length: most - least + 1 }, (_, k) => least + k);
    for (const bar of document.querySelectorAll("[data-price]")) {
      const spent = choice.limit - choice.left + costs(table, choice).cost;
      bar.setAttribute("width", Math.min(100, (100 * spent) / choice.limit) || 0);
    }
    for (const name of errors) {
      const marks = powers.map((power) => mark("tick", place(10 ** power)));
      if (Number.isFinite(figures[name])) marks.push(mark("dot", place(figures[name])));
      cells.get(name).track.replaceChildren(mark("width", place(width)), ...marks);
    }
    scale.replaceChildren(...powers.filter((_, k) => k % Math.ceil(powers.length / 5) === 0).map((power) => {
      const label = mark("power", place(10 ** power));
      label.append(number(10 ** power, 1));
      return label;
    }));
    const kept = figures.kept, ends = [0, 0.5, 1].map((part) => mark("tick", part));
    cells.get("kept").track.replaceChildren(
      ...ends, ...(kept ? [mark("band", kept.low, kept.high), mark("dot", kept.middle)] : []));
  }

  function write(place, raw) {
    const text = place.dataset.command.replace(/"'"|'[^']*'|\{(\w+)\}/g, (all, name) => // what is quoted has no gaps
      name ? raw[name] || name.toUpperCase() : all);
    const parts = text.includes("\n") ? [text] : text.split(/ (?=--)/); // one line breaks between options
    place.replaceChildren(...parts.flatMap((part, k) => [k ? " " : "", element("span", {}, part)]));
  }

  let later;
  function say(text, wrong) {
    root.classList.toggle("choices-wrong", wrong);
    clearTimeout(later);
    later = setTimeout(() => { status.textContent = text; }, wrong ? 0 : 500); // not at every step of a slider
  }

  function update() {
    const names = ["rows", "low", "high", "epsilon", "wanted", "limit", "left", "kind", "score", "spent", "told"];
    const raw = Object.fromEntries(names.map((name) => [name, written(name)]));
    const choice = Object.fromEntries(names.map((name) => [name, raw[name] === "" ? NaN : Number(raw[name])]));
    choice.told = raw.told;
    if (raw.kind !== "model") choice.score = 0; // only a model has one
    sliders.forEach((show) => show());
    for (const place of document.querySelectorAll("[data-example]")) place.hidden = raw.epsilon !== "";
    if (raw.epsilon === "") Object.assign(choice, { epsilon: Number(root.dataset.epsilon), limit: NaN, left: NaN });
    const wrong = problem(choice);
    for (const place of document.querySelectorAll("[data-command]")) write(place, wrong ? {} : raw);
    if (wrong) return say(wrong, true);
    const said = texts(table, choice);
    for (const place of root.querySelectorAll("[data-text]")) {
      place.textContent = said[place.dataset.text];
      place.hidden = place.textContent === "";
    }
    for (const place of root.querySelectorAll("[data-texts]")) {
      place.replaceChildren(...said[place.dataset.texts].map((text) => element("p", {}, text)));
    }
    for (const place of document.querySelectorAll("[data-odds]")) {
      place.textContent = (100 * atMost(0.5, costs(table, { ...choice, epsilon: Number(place.dataset.odds) }).total)).toFixed(0);
    }
    for (const [name, { row, value }] of cells) {
      row.hidden = !(name in said.cells);
      value.textContent = said.cells[name] ?? "";
    }
    draw(choice, outlook(table, choice));
    const all = `${said.cells.mean} for the ${table.names.mean}`;
    say(`ε = ${roundedUp(choice.epsilon, 4)}: odds grow by at most ${said.times}, noise is ${said.cells.label} for ${table.names.label}, ${all}.`, false);
  }

  for (const place of document.querySelectorAll("[data-command]")) {
    const button = element("button", { type: "button", class: "choices-copy" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(place.textContent);
        button.textContent = "Copied";
      } catch { // not allowed here: select it, so that a key copies it
        getSelection().selectAllChildren(place);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    (place.closest("pre") ?? place).after(button);
  }
  document.addEventListener("input", (event) => { if (fields.includes(event.target)) update(); });
  update();
})();
