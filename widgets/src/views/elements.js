// Elements: the few DOM functions that every view makes its parts with. Text is only ever set as text.

/**
 * @typedef {<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, name: string, text?: string) =>
 *   HTMLElementTagNameMap[Tag]} Make
 */

// JupyterLab looks for it on the focused element itself; without it x cuts the cell.
const KEEPS_KEYS = "data-lm-suppress-shortcuts";

/**
 * Make the maker of a view's elements: `make("p", "head")` has the class `am-tabs__head` where the
 * view's `block` is `am-tabs`.
 * @param {Document} document @param {string} block @returns {Make}
 */
export const makerOf =
  (document, block) =>
  (tag, name, text = "") => {
    const node = document.createElement(tag);
    node.className = `${block}__${name}`;
    node.textContent = text;
    return node;
  };

/** Put a view into its root, with its style. @param {HTMLElement} root @param {string} css @param {HTMLElement} box */
export function mount(root, css, box) {
  const style = root.ownerDocument.createElement("style");
  style.textContent = css;
  root.replaceChildren(style, box);
}

/** Let an element have its keys, also those that JupyterLab knows. @param {Element} node */
export const keepKeys = (node) => node.setAttribute(KEEPS_KEYS, "true");

/** Let whatever has the focus in a box have its keys. @param {HTMLElement} box */
export const keepKeysIn = (box) =>
  box.addEventListener("focusin", ({ target }) => keepKeys(/** @type {Element} */ (target)));

/** Do what a key means, and let nobody else have it. @param {Event} event @param {() => void} act */
export function consume(event, act) {
  event.preventDefault();
  event.stopPropagation();
  act();
}

/** Make a button. @param {Make} make @param {string} text @param {() => void} press */
export function buttonOf(make, text, press) {
  const button = make("button", "button", text);
  button.setAttribute("type", "button");
  button.addEventListener("click", press);
  return button;
}

/** Make an option of a select. @param {Make} make @param {string} value @param {string} [text] */
export function optionOf(make, value, text = value) {
  const option = make("option", "option", text);
  option.setAttribute("value", value);
  return option;
}

/**
 * Make a text that scrolls, can be reached by Tab and has a name; what has no role can have none.
 * @template {HTMLElement} Node @param {Node} node @param {string} label @returns {Node}
 */
export function readable(node, label) {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  return node;
}
