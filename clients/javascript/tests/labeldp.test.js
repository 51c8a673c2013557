/** What the client promises beyond its vectors: `node --test`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { CardError, kept, load } from "../labeldp.js";
import { give, restore } from "./vectors.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8"));
const vectors = read("mechanisms");
const find = (name, epsilon) =>
  vectors.find(({ name: one, card }) => one === name && card.includes(`"epsilon":${epsilon},`)).card;
const [weak, strong] = [find("rp", "8.0"), find("rp", "1.0")];

/** A storage of its own, as a browser has it. */
function memory() {
  const entries = new Map();
  return {
    entries,
    getItem: (name) => entries.get(name) ?? null,
    setItem: (name, text) => void entries.set(name, text),
  };
}

test("a card shows what it promises", async () => {
  const client = await load(strong);
  assert.equal(client.mechanism, "rp");
  assert.ok(client.epsilon > 0.99 && client.epsilon <= 1);
  assert.equal(client.bounds.length, 2);
  assert.ok(strong.includes(client.checksum));
  assert.throws(() => { "use strict"; client.epsilon = 0.1; });
});

test("a weaker card, or another one, is refused", async () => {
  const { checksum } = await load(strong, { maxEpsilon: 1 });
  await assert.rejects(load(weak, { maxEpsilon: 1 }), CardError);
  await load(strong, { sha256: checksum });
  await load(`\n${strong} \r\n`, { sha256: checksum.slice(7) });
  await assert.rejects(load(weak, { sha256: checksum }), CardError);
  for (const part of ["", "0", checksum.slice(-8), "sha256:", null, undefined, checksum.toUpperCase()])
    await assert.rejects(load(strong, { sha256: part }), CardError);
});

test("options that are misspelt or no numbers are refused, and none are read from a prototype", async () => {
  for (const options of [{ maxEpsilom: 1 }, { maxEpsilon: "1" }, { maxEpsilon: undefined }, { maxEpsilon: NaN }, { maxEpsilon: 0 }])
    await assert.rejects(load(strong, options), TypeError);
  Object.assign(Object.prototype, { maxEpsilon: 100, sha256: "x", epsilon: 0.1, bins: null, weaker: true });
  try {
    const client = await load(strong);
    assert.ok(client.epsilon > 0.9);
    await assert.rejects(load(weak, { maxEpsilon: 1 }), CardError);
    const lacking = read("forged").filter(({ why }) => why.includes("missing") || why.includes("there is no proof"));
    assert.ok(lacking.length > 2);
    for (const { card } of lacking) await assert.rejects(load(card), CardError);
  } finally {
    for (const name of ["maxEpsilon", "sha256", "epsilon", "bins", "weaker"]) delete Object.prototype[name];
  }
});

test("what is no card is refused", async () => {
  const long = `{"checksum":"sha256:${"0".repeat(64)}",${" ".repeat(2 ** 23)}`;
  for (const text of [undefined, null, 5, {}, [strong], new String(strong), "", "{}", "[".repeat(1e6), long])
    await assert.rejects(load(text), CardError);
});

test("only finite numbers are randomised, and no message repeats a value", async () => {
  const client = await load(strong);
  for (const value of [NaN, Infinity, -Infinity, "5", "", null, undefined, 5n, [5], {}, true, new Date(0)])
    assert.throws(() => client.randomize(value), (error) => error instanceof TypeError && !/5|Infinity/.test(error.message));
  for (const value of [1e308, -1e308, 5e-324, -0, 2 ** 60]) assert.ok(Number.isFinite(client.randomize(value)));
});

test("each draw takes fresh words, once, from WebCrypto alone", async () => {
  const random = Math.random;
  Math.random = () => assert.fail("Math.random");
  const client = await load(strong);
  let filled = 0;
  const own = globalThis.crypto.getRandomValues.bind(globalThis.crypto);
  globalThis.crypto.getRandomValues = (bytes) => {
    filled += bytes.length;
    return own(bytes);
  };
  try {
    const values = new Set(Array.from({ length: 1000 }, () => client.randomize(1)));
    assert.equal(filled, 16_000);
    assert.ok(values.size > 990);
  } finally {
    restore();
    Math.random = random;
  }
});

test("without random words nothing is released", async () => {
  const client = await load(strong);
  globalThis.crypto.getRandomValues = (bytes) => bytes; // zeros
  assert.throws(() => client.randomize(1), /random/);
  globalThis.crypto.getRandomValues = () => { throw new Error("no entropy"); };
  assert.throws(() => client.randomize(1), /entropy/);
  restore();
});

test("an answer is drawn once, kept by its question and across cards, and its value is not kept", async () => {
  const storage = memory();
  const [first, second] = [await load(strong), await load(weak)];
  assert.equal(kept("salary", storage), null);
  const answer = await first.answer("salary", 52_000.25, storage);
  assert.equal(answer.card, first.checksum);
  assert.deepEqual(await first.answer("salary", 99, storage), answer);
  assert.deepEqual(await second.answer("salary", 99, storage), answer);
  assert.deepEqual(kept("salary", storage), answer);
  assert.notDeepEqual(await first.answer("rent", 52_000.25, storage), answer);
  assert.ok(![...storage.entries].some(([name, text]) => `${name}${text}`.includes("52000.25")));
  await assert.rejects(first.answer("", 1, storage), TypeError);
  await assert.rejects(first.answer("age", NaN, storage), TypeError);
  assert.equal(kept("age", storage), null);
});

test("two requests at once draw once", async () => {
  const [storage, client] = [memory(), await load(strong)];
  const [a, b] = await Promise.all([client.answer("q", 1, storage), client.answer("q", 1, storage)]);
  assert.deepEqual(a, b);
});

test("an answer that cannot be kept is not shown", async () => {
  const client = await load(strong);
  const full = { getItem: () => null, setItem: () => { throw new Error("full"); } };
  await assert.rejects(client.answer("q", 1, full), /full/);
  await assert.rejects(client.answer("q", 1, { getItem: () => null, setItem: () => {} }), /kept/);
  const damaged = { getItem: () => "{", setItem: () => assert.fail("drawn again") };
  await assert.rejects(client.answer("q", 1, damaged), SyntaxError);
});

test("without a storage nothing is drawn, and the message says what to pass", async () => {
  const client = await load(strong);
  globalThis.crypto.getRandomValues = () => assert.fail("drawn");
  for (const storage of [undefined, null, {}, { getItem: () => null }]) {
    await assert.rejects(client.answer("q", 1, storage), /Pass a storage for each person/);
    assert.throws(() => kept("q", storage), /Pass a storage/);
  }
  restore();
});

test("the last word of the window leads to the last cell, at the edge of 2^64", async () => {
  const client = await load(strong);
  give(2n ** 64n - 1n, 2 ** 32 - 1);
  const [high, beyond] = [client.randomize(client.bounds[1]), client.randomize(1e308)];
  give(0n, 0);
  const lowest = client.randomize(client.bounds[1]);
  restore();
  assert.ok(Number.isFinite(high) && high === beyond && lowest < client.bounds[0]);
});
