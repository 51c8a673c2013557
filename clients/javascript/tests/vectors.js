/** Compare a client with test vectors, in Node and in a browser. */

/** Make the next random words be given ones, until `restore`. */
export function give(word, rounding) {
  globalThis.crypto.getRandomValues = (bytes) => {
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(word), true);
    view.setUint32(8, rounding, true);
    view.setUint32(12, 1, true);
    return bytes;
  };
}

export const restore = () => delete globalThis.crypto.getRandomValues;

/** Return the number of cases, and the first that differ from those of the vectors. */
export async function compare({ load }, vectors) {
  let count = 0;
  const wrong = [];
  for (const { name, card, cases } of vectors) {
    const client = await load(card);
    for (const [label, word, rounding, expected] of cases) {
      give(word, rounding);
      const found = client.randomize(label);
      restore();
      count += 1;
      if (!Object.is(found, expected)) wrong.push({ name, label, word, rounding, expected, found });
    }
  }
  return { count, wrong: wrong.slice(0, 20) };
}

/** Return, for each card, whether the client would use it; anything but a CardError for one is an error. */
export async function accepts({ load, CardError }, cards) {
  const accepted = [];
  for (const card of cards) {
    const error = await load(card).then(() => null, (thrown) => thrown);
    if (error && !(error instanceof CardError)) throw error;
    accepted.push(error === null);
  }
  return accepted;
}

/** Return how often each value was released for a label, in so many draws. */
export async function tally({ load }, card, label, draws) {
  const client = await load(card);
  const counts = {};
  for (let i = 0; i < draws; i++) {
    const value = client.randomize(label);
    counts[value] = (counts[value] ?? 0) + 1;
  }
  return counts;
}
