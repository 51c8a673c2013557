/** A card that must not be used. */
export class CardError extends Error {}

/** An answer as it may be sent: the released value, and the checksum of the card that it was drawn under. */
export interface Answer {
  readonly value: number;
  readonly card: string;
}

/** Whatever keeps text under a name, such as `localStorage`, for one person: another would get the same answer. */
export interface AnswerStorage {
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
}

/** The randomiser of a card that was verified. */
export interface Client {
  /** The name of the mechanism. */
  readonly mechanism: string;
  /** Values outside are clipped. */
  readonly bounds: readonly [number, number];
  /** The proven privacy loss of one released value. */
  readonly epsilon: number;
  /** The card's checksum: "sha256:" and 64 digits. */
  readonly checksum: string;
  /** Return a released value under fresh random words. Every call costs epsilon: keep what it returned. */
  randomize(value: number): number;
  /**
   * Return the answer to a question that was kept before, under whatever card; else randomise, keep and return one.
   * The value itself is not kept. By default answers are kept in `localStorage`; where there is none, as in Node,
   * a storage is needed.
   */
  answer(question: string, value: number, storage?: AnswerStorage): Promise<Answer>;
}

export interface LoadOptions {
  /** Refuse a card with a larger proven epsilon. */
  maxEpsilon?: number;
  /** Refuse any card but the one with this checksum: the 64 digits at its beginning, with or without "sha256:". */
  sha256?: string;
}

/**
 * Return the client of a mechanism's card.
 *
 * @throws {CardError} if the card's integers do not prove its epsilon, or the options do not allow it
 */
export function load(text: string, options?: LoadOptions): Promise<Client>;

/** Return the answer to a question that was kept, or null. */
export function kept(question: string, storage?: AnswerStorage): Answer | null;
