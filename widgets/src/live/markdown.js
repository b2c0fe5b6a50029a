// Markdown: an answer's text given, already safe, to the front end's own renderer where it has one.

/** @import { Renderer, Rendermime } from "./model.js" */

/** @typedef {{renderer: Renderer, shown: string, wanted: string, isBusy: boolean}} Rendered */

const REST = 4; // times what rendering took, before a text that grows is rendered again

/**
 * Give the front end's own Markdown renderer (JupyterLab's, which sanitises), where it has one.
 * @param {Rendermime | undefined} rendermime
 */
export function markdownBy(rendermime) {
  if (rendermime === undefined || typeof rendermime?.createRenderer !== "function")
    return undefined;
  /** @type {WeakMap<HTMLElement, Rendered>} */
  const texts = new WeakMap();
  return (/** @type {HTMLElement} */ node, /** @type {string} */ wanted) => {
    let text = texts.get(node);
    if (text === undefined) {
      const renderer = rendermime.createRenderer("text/markdown");
      text = { renderer, shown: "", wanted, isBusy: false };
      texts.set(node, text);
      node.className += " am-turn__text--rendered";
      node.replaceChildren(renderer.node);
    }
    text.wanted = wanted;
    if (!text.isBusy) void render(rendermime, text);
  };
}

/** Render until what is shown is what is wanted. @param {Rendermime} rendermime @param {Rendered} text */
async function render(rendermime, text) {
  text.isBusy = true;
  while (text.shown !== text.wanted) {
    const began = performance.now();
    const next = text.wanted;
    const data = { "text/markdown": next };
    await text.renderer.renderModel(rendermime.createModel({ data, trusted: false }));
    rendermime.latexTypesetter?.typeset(text.renderer.node);
    text.shown = next;
    const tookMs = performance.now() - began;
    if (text.wanted !== next) await new Promise((resolve) => setTimeout(resolve, REST * tookMs));
  }
  text.isBusy = false;
}
