// Words: numbers as every view writes them.

/** @param {number} count */
export const grouped = (count) => count.toLocaleString("en-US");

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Give a part of a whole as a width. @param {number} part @param {number} whole @param {number} [digits] */
export const percentOf = (part, whole, digits = 2) =>
  `${Math.min(100, (100 * part) / Math.max(1, whole)).toFixed(digits)}%`;
