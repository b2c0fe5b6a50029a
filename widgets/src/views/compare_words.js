// What a screen reader says of a comparison: what is compared, how alike answers are, where they differ.

/**
 * @typedef {{id: string, label: string}} Choice
 * @typedef {{text: string, differs: boolean}} Piece
 * @typedef {{id: string, status: string, turn: number | null, facts: string, alike: number | null,
 *   by_lines: boolean, pieces: Piece[]}} Column
 * @typedef {{prompts: Choice[], chosen: string, prompt: string, base: string, columns: Column[],
 *   hint: string, note: string}} Comparison
 */

const SPOKEN_PLACES = 5;
const SPOKEN_CHARACTERS = 60;

/** Say how much of an answer is as in the base's. @param {number} alike @param {string} base */
export const spokenAlike = (alike, base) =>
  alike === 100 ? `the same as ${base}` : `${alike} % in common with ${base}`;

/** Say that how much is as in the base's isn't known. @param {string} base */
export const spokenByLines = (base) => `compared with ${base} by lines and sentences`;

/** Cut what is long, between characters. @param {string} text */
const short = (text) =>
  [...text].length > SPOKEN_CHARACTERS
    ? `${[...text].slice(0, SPOKEN_CHARACTERS).join("")}…`
    : text;

/**
 * Say where an answer differs. Of the screen readers only JAWS and NVDA tell what is marked, as each is
 * set to, and words hidden in the text would break it up for all of them, at each mark. So it is told
 * once, when an answer is reached, as the description of its text; `<mark>` stays for those that tell it.
 * @param {Piece[]} pieces
 */
export function spokenPlaces(pieces) {
  const places = pieces
    .filter(({ differs }) => differs)
    .map(({ text }) => short(text.replace(/\s+/g, " ")));
  if (places.length === 0) return "";
  const more = places.length - SPOKEN_PLACES;
  const told = [...places.slice(0, SPOKEN_PLACES), ...(more > 0 ? [`and ${more} more`] : [])];
  return `differs in ${places.length === 1 ? "one place" : `${places.length} places`}: ${told.join("; ")}`;
}

/** Say what is compared, when a person chose it. @param {Comparison} state @param {boolean} namesPrompt */
export function spokenChoice(state, namesPrompt) {
  const others = state.columns.filter(
    ({ id, status }) => id !== state.base && status !== "not asked",
  );
  const shares = others.map((column) =>
    others.length === 1 ? spokenShare(column) : `${column.id} ${spokenShare(column)}`,
  );
  const prompt = state.prompts.find(({ id }) => id === state.chosen)?.label ?? "";
  const asked = namesPrompt ? [prompt] : [];
  return [...asked, `compared with ${state.base}`, ...shares].join(", ");
}

/** @param {Column} column */
function spokenShare({ alike, by_lines: byLines }) {
  if (byLines) return "by lines and sentences";
  return alike === 100 ? "the same" : `${alike} % in common`;
}
