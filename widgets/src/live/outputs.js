// Outputs: the places in a page that a live view is drawn in, for as long as its kernel answers.
//
// An output holds static HTML in an element with the model's class, and no widget: where the kernel
// is gone (reopened, restarted, GitHub) that HTML is simply what is seen, while JupyterLab would
// prefer a widget to it and then not find its model. So nothing is displayed by the widget; its
// model, made by the comm alone, looks for its outputs in the page and draws beside the static HTML.

import { keepKeys } from "../views/elements.js";
import { kernelOf } from "./model.js";

/** @import { Model } from "./model.js" */

// MathJax looks for formulas in whole outputs: what stands in a view is text, and its nodes are kept.
const DRAWN = "agent-magics-drawn mathjax_ignore";

/** Find the root of the live view in an output. @param {Element} output @returns {HTMLElement | null} */
export const drawnIn = (output) =>
  childrenOf(output).find((child) => child.className === DRAWN) ?? null;

/** @param {Element} output */
const childrenOf = (output) => /** @type {HTMLElement[]} */ ([...output.children]);

/** Show an output's static HTML, or hide it. @param {Element} output @param {boolean} shows */
export function showStatic(output, shows) {
  for (const child of childrenOf(output)) {
    if (child.className !== DRAWN) child.style.setProperty("display", shows ? "" : "none");
  }
}

/**
 * Put a root for a live view, a new one if none is given, into an element.
 * @param {Element} element @param {HTMLElement} [root]
 */
export function placeRoot(element, root = document.createElement("div")) {
  root.className = DRAWN;
  element.append(root);
  return root;
}

/** Put a root in the place of an output's static HTML. @param {Element} output @param {HTMLElement} [root] */
export function replaceStatic(output, root) {
  const placed = placeRoot(output, root);
  keepFoldsKeys(output);
  showStatic(output, false);
  return placed;
}

/** Find what a class of an output says behind a prefix. @param {Element} output @param {string} prefix */
export const classBehind = (output, prefix) =>
  output.className
    .split(" ")
    .find((name) => name.startsWith(prefix))
    ?.slice(prefix.length);

/**
 * Let a dashboard's folds, which stand around an output, have their keys: JupyterLab leaves out of
 * notebooks that it doesn't trust what the HTML says of that itself.
 * @param {Element} output
 */
function keepFoldsKeys(output) {
  const folds = output.closest(".am-dashboard")?.querySelectorAll("summary") ?? [];
  for (const fold of folds) keepKeys(fold);
}

/**
 * Find a model's outputs for as long as its kernel answers: `see(output)` is called for each of them
 * again and again, whenever the page changes. They may come, go and come back (JupyterLab takes cells
 * out of the page that are out of sight), so none is held on to. At the end the static HTML is shown.
 * @param {Model} model @param {(output: Element) => void} see @param {() => void} leave
 */
export function followOutputs(model, see, leave) {
  const outputs = document.getElementsByClassName(model.get("anchor"));
  const kernel = kernelOf(model);
  let isOver = false;
  const look = () => {
    if (isOver) return;
    if (kernelOf(model) !== kernel) {
      end();
      return;
    }
    for (const output of outputs) see(output);
  };
  const page = new MutationObserver(look);
  const end = () => {
    isOver = true;
    page.disconnect();
    model.off("comm_live_update", end);
    leave();
    for (const output of outputs) {
      drawnIn(output)?.remove();
      showStatic(output, true);
    }
  };
  model.on("comm_live_update", end); // JupyterLab: the kernel restarts
  page.observe(document.body, { childList: true, subtree: true });
  look();
  return { look, end };
}
