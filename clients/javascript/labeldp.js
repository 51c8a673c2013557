/**
 * Randomise an answer where it is given, in a browser or in Node, with a mechanism of labeldp.
 *
 *     const client = await load(cardText, { maxEpsilon: 1, sha256: "4f1c…" });
 *     const { value, card } = await client.answer("salary", input.valueAsNumber); // drawn once, and kept
 *
 * A card is verified before use, in exact integers. docs/formats.md specifies cards and sampling, bit for bit.
 */
const [MAX_INTEGER, WORDS, ONE] = [1n << 53n, 1n << 64n, 1n << 192n]; // the last is the unit of exponentials
const [MAX_CHARACTERS, MAX_ENTRIES] = [2 ** 23, 2 ** 17]; // the latter of a table, or of noise
const KEPT = "labeldp:answer:";

/** Thrown for a card that must not be used. */
export class CardError extends Error {
  name = "CardError";
}

function demand(condition, message) {
  if (!condition) throw new CardError(message);
}

// ---- JSON: integers become BigInt and doubles Number; no key occurs twice, and no object has a prototype
const TOKEN = /("[^"\\]*(?:\\[^][^"\\]*)*")|(-?\d[\d.eE+-]*)|"/g;
function parse(text) {
  // JSON.parse reads the grammar, of text in which numbers are strings and no two strings are equal
  const mark = (_, string, number, at) => (string ? `"${at}:${string.slice(1)}` : number ? `"#${number}"` : "?");
  return JSON.parse(text.replace(TOKEN, mark), (_, value) => {
    if (typeof value === "string") return value[0] === "#" ? parseNumber(value.slice(1)) : parseString(value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const object = Object.create(null);
    for (const [key, member] of Object.entries(value)) {
      const name = parseString(key);
      demand(key[0] !== "#" && !(name in object), "The card has a key twice in an object.");
      object[name] = member;
    }
    return object;
  });
}
function parseString(marked) {
  demand(!/\p{Surrogate}/u.test(marked), "The card has text with half of a surrogate pair.");
  return marked.slice(marked.indexOf(":") + 1);
}
function parseNumber(text) {
  const form = /^-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.exec(text);
  demand(form && Number.isFinite(Number(text)), "The card has a number that is none, or not finite.");
  return form[1] || form[2] ? Number(text) : BigInt(text);
}

// ---- fields: name:type; type* is a list, type& a pair, type% an object with any names
const DOMAIN = "kind:text low:number high:number promise:fraction&";
const FIELDS = new Map(
  `card schema:text version:size checksum:text mechanism:text parameters:fields% channel:kind= proof:proof
  proof epsilon:number delta:number ratio:fraction
  kind=table ${DOMAIN} values:number* counts:count**
  kind=window ${DOMAIN} cells:count window:count background:count extra:count bins:integer|null ${""
  }spread_outside:boolean cuts:number*|null values:number*|null
  kind=shift ${DOMAIN} steps:integer margin:integer reach:integer counts:rule= counts_sha256:text
  rule=laplace rule:text epsilon:fraction cut:integer
  rule=staircase rule:text epsilon:fraction cut:integer flat:size
  rule=listed rule:text listed:count*`
    .split("\n").map((line) => line.trim().split(" "))
    .map(([name, ...fields]) => [name, fields.map((field) => field.split(":"))]),
);
const isText = (value) => typeof value === "string";
const isWhole = (value) => typeof value === "bigint" && value >= -MAX_INTEGER && value <= MAX_INTEGER;
const isInteger = (value) => isWhole(value) && value >= 0n;
const TYPES = {
  __proto__: null,
  text: isText,
  boolean: (value) => typeof value === "boolean",
  integer: isInteger,
  size: (value) => isInteger(value) && value > 0n,
  count: (value) => isInteger(value) || (isText(value) && /^[1-9]\d{15,19}$/.test(value) && value > MAX_INTEGER),
  number: (value) => typeof value === "number" || isWhole(value),
  fraction: isFraction,
};
/** Refuse a value that is not of a type; "kind=" is an object with the fields that its kind needs. */
function conform(value, type, path) {
  const [base, mark] = [type.slice(0, -1), type.at(-1)];
  if (type.endsWith("|null")) return value === null || conform(value, type.slice(0, -5), path);
  if (type in TYPES) return demand(TYPES[type](value), `The card's ${path} is not of the type ${type}.`);
  if (mark === "*" || mark === "&") {
    demand(Array.isArray(value) && (mark === "*" || value.length === 2), `The card's ${path} is not such a list.`);
    return value.forEach((item) => conform(item, base, path));
  }
  demand(typeof value === "object" && value !== null && !Array.isArray(value), `The card's ${path} is no object.`);
  if (mark === "%") return undefined;
  demand(mark !== "=" || isText(value[base]), `The card's ${path} has no ${base}.`);
  const fields = FIELDS.get(mark === "=" ? type + value[base] : type);
  demand(fields, `The card's ${path} is of a kind that this client does not know.`);
  const isComplete = Object.keys(value).length === fields.length && fields.every(([name]) => name in value);
  demand(isComplete, `The card's ${path} lacks a field, or has an unknown one.`);
  return fields.forEach(([name, inner]) => conform(value[name], inner, name));
}

// ---- exact numbers: fractions are pairs of BigInt
const gcd = (a, b) => (b === 0n ? a : gcd(b, a % b));
const fraction = (text) => `${text}/1`.split("/", 2).map(BigInt);
const isBelow = ([p, q], [r, s]) => p * s < r * q;
const isEqual = ([p, q], [r, s]) => p * s === r * q;
const most = (a, b) => (a > b ? a : b);
const least = (a, b) => (a < b ? a : b);
const total = (counts) => counts.reduce((sum, count) => sum + count, 0n);
function isFraction(text) {
  const parts = isText(text) && text.length <= 400 && /^(?:0|[1-9]\d*)(?:\/([1-9]\d*))?$/.exec(text);
  return parts && (parts[1] === undefined || (parts[1] !== "1" && gcd(...fraction(text)) === 1n));
}
/** Return a double that is not negative as a fraction: exactly, and as the decimal that it is written as. */
function binary(double, shift = 0n) {
  return Number.isInteger(double) ? [BigInt(double), 1n << shift] : binary(double * 2, shift + 1n);
}
function decimal(double) {
  const [, whole, part = "", exponent = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(double));
  const scale = BigInt(exponent) - BigInt(part.length);
  return scale < 0n ? [BigInt(whole + part), 10n ** -scale] : [BigInt(whole + part) * 10n ** scale, 1n];
}
/** Return the double after, or by −1 before, one that is not negative. */
function neighbour(double, step) {
  const bits = new BigInt64Array(new Float64Array([double]).buffer);
  bits[0] += step;
  return new Float64Array(bits.buffer)[0];
}
function isWide(low, high) {
  const largest = Math.max(Math.abs(low), Math.abs(high));
  return high - low >= Math.max(1e-140, 1024 * (neighbour(largest, 1n) - largest)) && high - low <= 1e140;
}
/** Return a lower bound of e^(p/q), in units of 2^−192. */
function expLower([p, q], term = ONE) {
  let sum = 0n;
  for (let k = 1n; term > 0n; term = (term * p) / (q * k++)) sum += term;
  return sum;
}

// ---- counts, and the alias tables that are sampled
/** Return the table of a row of counts: a word's first bits name a column, which has a threshold and an alias. */
function aliasTable(counts) {
  demand(total(counts) === WORDS, "The counts do not sum to 2^64.");
  const bits = Math.max(1, 32 - Math.clz32(counts.length - 1));
  const capacity = WORDS >> BigInt(bits);
  const words = Array.from({ length: 2 ** bits }, (_, column) => counts[column] ?? 0n);
  const [columns, thresholds] = [[...words.keys()], words.map(() => 0n)];
  const aliases = columns.slice();
  const small = columns.filter((column) => words[column] < capacity);
  const large = columns.filter((column) => words[column] > capacity);
  for (const column of small) { // grows while we walk
    const donor = large.at(-1);
    [thresholds[column], aliases[column]] = [words[column], donor];
    words[donor] -= capacity - words[column];
    if (words[donor] <= capacity) large.pop();
    if (words[donor] < capacity) small.push(donor);
  }
  return { bits, capacity, thresholds, aliases };
}
/** Return the number of words of each column, from the table itself: what is proven is what is sampled. */
function recount({ capacity, thresholds, aliases }, size) {
  const counts = thresholds.slice();
  aliases.forEach((alias, column) => (counts[alias] += capacity - thresholds[column]));
  demand(total(counts.slice(0, size)) === WORDS, "Words lead to an output that does not exist.");
  return counts.slice(0, size);
}
function draw({ bits, capacity, thresholds, aliases }, word) {
  const column = Number(word >> BigInt(64 - bits));
  return (word & (capacity - 1n)) < thresholds[column] ? column : aliases[column];
}

/** Return the counts of the noise −reach … reach, by the rule that the card states. */
function noiseCounts({ counts: rule, steps, reach }) {
  const [N, r, c, flat] = [steps, reach, rule.cut ?? 0, rule.flat ?? 0].map(Number);
  demand(N >= 1 && N <= 2 ** 51 && r >= 1 && 2 * r < MAX_ENTRIES, "Steps or reach are out of range.");
  if (rule.rule === "listed") return rule.listed.map(BigInt);
  const [p, q] = fraction(rule.epsilon);
  demand(r <= c && c + N <= MAX_ENTRIES && flat <= N && p <= 20n * q, "The rule of the counts is out of range.");
  const [E, g, unit] = [expLower([p, q]), expLower([p, q * BigInt(N)]), 1n << 256n];
  const w = [unit];
  for (let j = 1; j < N; j++) w.push(flat === 0 ? (w[j - 1] * ONE) / g : j < flat ? unit : (unit * ONE) / E);
  for (let j = N; j < c + N; j++) w.push((w[j - N] * ONE) / E);
  const half = [...w.slice(0, r), (total(w.slice(c)) * E) / (E - ONE) + total(w.slice(r, c))];
  const sum = 2n * total(half) - unit;
  const [middle, ...right] = half.map((weight) => (weight * WORDS) / sum);
  return [...right.slice().reverse(), WORDS - 2n * total(right), ...right];
}

// ---- channels: pairs of a largest and a smallest count, and (label, word, rounding bits) → released value
/** Return the step between rows, and functions from a label to its row; as in Python, to the last bit. */
function domain(low, high, steps) {
  const width = high - low;
  const lead = Math.abs(low - width) < width / 2 ? 2 : 1; // arithmetic starts so many widths below, not at zero
  const position = (label) => (label - (low - lead * width)) * (steps / width);
  const round = (place, offset) => place + (2 ** 52 - lead * steps - offset) - 2 ** 52; // to an integer
  const row = (place, offset) => Math.min(Math.max(round(place, offset), 0), steps);
  const rounded = (label, bits) => row(position(label) + bits * 2 ** -32, 0.5);
  return { step: width / steps, nearest: (label) => row(position(label), 0), rounded };
}
const CHANNELS = {
  table({ values, counts }, low, high) {
    const isShort = counts.length >= 2 && counts.length * values.length <= MAX_ENTRIES;
    demand(isShort && counts.every((row) => row.length === values.length), "The table has another shape.");
    const tables = counts.map((row) => aliasTable(row.map(BigInt)));
    const rows = tables.map((table) => recount(table, values.length));
    const pairs = values.map((_, output) => [most, least].map((pick) => rows.map((row) => row[output]).reduce(pick)));
    const { rounded } = domain(low, high, counts.length - 1);
    return { pairs, sample: (label, word, bits) => Number(values[draw(tables[rounded(label, bits)], word)]) };
  },
  window(channel, low, high) {
    const [M, m, b, c] = ["cells", "window", "background", "extra"].map((name) => BigInt(channel[name]));
    const [background, S] = [M * b, WORDS - M * b];
    const { cuts, values, spread_outside: spread } = channel;
    const isSmall = m > 0n && b > 0n && c > 0n && c < WORDS && M < 1n << 63n && m <= M && M - m < 1n << 51n;
    demand(isSmall && S > 0n && (S - 1n) / c < m, "The words of the window do not fit into its cells.");
    const isBinned = cuts && values && !spread && m === 1n && BigInt(values.length) === M && cuts.length < M;
    demand(channel.bins === null && (isBinned || (!cuts && !values && m < M)), "The window has no start or value.");
    const edges = [low, ...(cuts ?? []).map(Number), high];
    demand(edges.every((edge, i) => i === 0 || edges[i - 1] < edge), "The cuts do not rise.");
    const { step, nearest } = domain(low, high, Number(M - m) || 1);
    const start = (label) => BigInt(cuts ? edges.slice(1, -1).filter((cut) => cut <= label).length : nearest(label));
    const first = low + (0.5 - Number(m) / 2) * step;
    const sample = (label, word) => {
      const isOutside = spread && (label < low || label > high);
      const cell = isOutside ? (word - background) / ((S + M - 1n) / M) : start(label) + (word - background) / c;
      const output = Number(word < background ? word / b : cell);
      return cuts ? Number(values[output]) : output * step + first;
    };
    return { pairs: [[m === M && !spread ? b : b + least(c, S), b]], sample };
  },
  shift(channel, low, high) {
    const [N, a, r] = [channel.steps, channel.margin, channel.reach].map(Number);
    const stated = noiseCounts(channel);
    demand(stated.length === 2 * r + 1 && r >= N + a, "Not every label reaches both ends.");
    const table = aliasTable(stated);
    const n = recount(table, stated.length);
    const extremes = (pick) => {
      let values = n.slice(r - N - a + 1, r + a + N); // the outputs between the two ends, under all labels
      for (let span = 1, hop; span <= N; span += hop) {
        hop = Math.min(span, N + 1 - span);
        values = values.slice(hop).map((value, i) => pick(value, values[i]));
      }
      const ends = [n, n.slice().reverse()].map((t) => [r - a - N + 1, r - a + 1].map((end) => total(t.slice(0, end))));
      return [...values, ...ends.map((sums) => sums.reduce(pick))];
    };
    const smallest = extremes(least);
    demand(smallest.every((count) => count > 0n), "An output is possible under one label and not under another.");
    const pairs = extremes(most).map((count, i) => [count, smallest[i]]);
    const { step, rounded } = domain(low, high, N);
    const clamp = (cell) => Math.min(Math.max(cell, r - a), r + N + a);
    const sample = (label, word, bits) => clamp(rounded(label, bits) + draw(table, word)) * step + (low - r * step);
    return { pairs, sample, hashed: n.join(",") };
  },
};

/** Refuse parameters that contradict the channel, of a mechanism with a name that formats.md knows. */
function checkParameters(name, { epsilon, ...given }, { kind, low, high, promise, ...channel }) {
  const [bounds, outside] = [[Number(low), Number(high)], channel.spread_outside ? "uniform" : "project"];
  const isNoise = kind === "shift" && channel.counts.rule === name;
  const isPair = kind === "table" && channel.counts.length === 2 && channel.values.length === 2;
  const isSized = kind === "window" && channel.cuts === null && TYPES.number(given.zeta) && given.zeta > 0;
  const known = {
    __proto__: null,
    laplace: isNoise && { bounds },
    staircase: isNoise && { bounds, minimise: given.minimise === "squared" ? "squared" : "absolute" },
    "two-point": isPair && { bounds },
    unbiased: kind === "table" && { bounds },
    rp: isSized && { interval: bounds, zeta: given.zeta, outside },
    "rr-on-bins": kind === "window" && channel.cuts && { edges: [bounds[0], ...channel.cuts, bounds[1]] },
    gaussian: false,
  };
  if (!(name in known)) return;
  const plain = (_, value) => (isWhole(value) ? Number(value) : value);
  const [stated, expected] = [given, known[name]].map((one) => JSON.stringify(Object.entries(one).sort(), plain));
  const isInRange = TYPES.number(epsilon) && epsilon >= 0.001 && epsilon <= 20;
  demand(isInRange && known[name] && stated === expected, "The card's parameters contradict its channel.");
  const smaller = [binary, decimal].map((read) => read(Number(epsilon))).reduce((x, y) => (isBelow(x, y) ? x : y));
  demand(isEqual(fraction(promise[0]), smaller), "The card promises another epsilon than its parameters.");
}
/** Return the sampler of a mechanism whose integers prove the epsilon that it states. */
async function prove({ mechanism, parameters, channel, proof }, digest) {
  const [low, high] = [Number(channel.low), Number(channel.high)];
  const [promise, delta] = channel.promise.map(fraction);
  demand(isWide(low, high) && promise[0] <= 20n * promise[1], "The card's bounds or epsilon are out of range.");
  demand(delta[0] === 0n && proof.delta == 0, "The card has a delta: only pure epsilon is used here.");
  checkParameters(mechanism, parameters, channel);
  const { pairs, sample, hashed } = CHANNELS[channel.kind](channel, low, high);
  demand(hashed === undefined || (await digest(hashed)) === channel.counts_sha256, "The counts have another hash.");
  demand(pairs.every(([top, bottom]) => bottom > 0n || top === 0n), "An output is not possible under every label.");
  const worst = pairs.reduce((ratio, pair) => (pair[1] > 0n && isBelow(ratio, pair) ? pair : ratio), [1n, 1n]);
  const isAtMost = (amount) => worst[0] * ONE <= expLower(amount) * worst[1];
  const epsilon = Number(proof.epsilon);
  demand(isAtMost(promise), "The counts do not satisfy the promised epsilon.");
  demand(epsilon >= 0 && epsilon <= 20 && isAtMost(binary(epsilon)), "The counts do not satisfy the stated epsilon.");
  demand(epsilon === 0 || !isAtMost(binary(neighbour(epsilon, -1n))), "The stated epsilon is too large.");
  demand(isEqual(worst, fraction(proof.ratio)), "The stated ratio is not that of the counts.");
  return sample;
}

// ---- the client
function makeClient({ mechanism, channel, proof }, checksum, sample, crypto) {
  const randomize = (value) => {
    if (typeof value !== "number" || !Number.isFinite(value)) throw new TypeError("The answer is no number.");
    const words = new DataView(crypto.getRandomValues(new Uint8Array(16)).buffer);
    const [word, more] = [words.getBigUint64(0, true), words.getBigUint64(8, true)];
    if ((word | more) === 0n) throw new Error("The random words are all zero.");
    return sample(value, word, Number(more & 0xffffffffn));
  };
  const answer = async (question, value, storage = globalThis.localStorage) => {
    const once = () => {
      if (kept(question, storage)) return kept(question, storage);
      const text = JSON.stringify({ value: randomize(value), card: checksum });
      storage.setItem(KEPT + question, text);
      if (storage.getItem(KEPT + question) !== text) throw new Error("The answer could not be kept.");
      return JSON.parse(text);
    };
    const locks = globalThis.navigator?.locks; // two tabs at once do not both draw
    return locks ? locks.request(KEPT + question, once) : once();
  };
  const bounds = Object.freeze([Number(channel.low), Number(channel.high)]);
  return Object.freeze({ mechanism, bounds, epsilon: Number(proof.epsilon), checksum, randomize, answer });
}
/** Return the answer to a question that is kept, as {value, card}, or null. */
export function kept(question, storage = globalThis.localStorage) {
  if (typeof question !== "string" || question === "") throw new TypeError("The question has no name.");
  if (!storage?.getItem || !storage.setItem) throw new TypeError("Pass a storage for each person: none is here.");
  return JSON.parse(storage.getItem(KEPT + question));
}
/** Return the client of a card that proves its epsilon, and that `options` allow; else throw. */
export async function load(text, options = {}) {
  const { maxEpsilon, ...others } = { maxEpsilon: Infinity, ...options };
  if (typeof maxEpsilon !== "number" || !(maxEpsilon > 0)) throw new TypeError("maxEpsilon must be a positive number.");
  const crypto = globalThis.crypto ?? (await import("node:crypto").catch(() => ({}))).webcrypto; // of Node 18
  if (!crypto?.subtle) throw new Error("There are no secure random words here: browsers have them on https pages.");
  const digest = async (data) => {
    const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(data));
    return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  demand(isText(text) && text.length <= MAX_CHARACTERS && /^[\x00-\x7f]*$/.test(text), "A card is text in ASCII.");
  const checksum = `sha256:${await digest(text.trim().slice(86))}`;
  demand(text.trim().startsWith(`{"checksum":"${checksum}",`), "The card was changed: its checksum does not fit.");
  const { sha256, ...unknown } = { sha256: checksum, ...others };
  if (Object.keys(unknown).length > 0) throw new TypeError("The options are maxEpsilon and sha256.");
  demand(sha256 === checksum || sha256 === checksum.slice(7), "This is another card than the page expects.");
  try {
    const card = parse(text);
    demand(card.schema === "labeldp.mechanism" && card.version === 1n, "This is no card of a mechanism, version 1.");
    demand(!("origin" in card), "The card names what other people's data cost: write it without its origin.");
    conform(card, "card", "text");
    demand(Number(card.proof.epsilon) <= maxEpsilon, `The card has epsilon ${card.proof.epsilon}: that is too much.`);
    return makeClient(card, checksum, await prove(card, digest), crypto);
  } catch (error) {
    throw error instanceof CardError ? error : new CardError(`The card cannot be read: ${error.message}`);
  }
}
