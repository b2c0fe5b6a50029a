// What the compare view looks like.

import { CONTROL_EDGE, EDGE, FOCUS_RING, MUTED, SPOKEN_ONLY, TEXT } from "./styles.js";

export const STYLE = `
.am-compare { position: relative; ${TEXT} margin: 4px 0; }
.am-compare [hidden] { display: none !important; }
.am-compare p.am-compare__hint { margin: 0; }
.am-compare p.am-compare__note { margin: 6px 0 0; font-size: .9em; ${MUTED} }
.am-compare .am-compare__spoken { ${SPOKEN_ONLY} }
.am-compare .am-compare__prompt { margin: 0 0 6px; max-height: 6.5em; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; unicode-bidi: plaintext; font-weight: 600; }
.am-compare .am-compare__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; margin: 0 0 8px; }
.am-compare label.am-compare__label { display: inline-flex; align-items: center; gap: 6px; min-width: 0; max-width: 100%; margin: 0; }
.am-compare .am-compare__name { flex: none; ${MUTED} }
.am-compare select.am-compare__field { font: inherit; color: inherit; min-width: 0; max-width: 28em; padding: 2px 6px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, Canvas); }
.am-compare input.am-compare__check { margin: 0; }
.am-compare .am-compare__columns { display: grid; gap: 10px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18em), 1fr)); }
.am-compare .am-compare__column { min-width: 0; border-radius: 4px; border: ${EDGE}; }
.am-compare .am-compare__column--base { border-color: var(--jp-brand-color1, currentColor); }
.am-compare .am-compare__head { padding: 5px 10px; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); overflow-wrap: anywhere; }
.am-compare .am-compare__slot { font-weight: 600; unicode-bidi: isolate; }
.am-compare .am-compare__alike { margin-inline-start: 8px; }
.am-compare .am-compare__facts { font-size: .9em; ${MUTED} font-variant-numeric: tabular-nums; }
.am-compare .am-compare__text { padding: 8px 10px; max-height: 30em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext; font-family: var(--jp-content-font-family, inherit); font-size: var(--jp-content-font-size1, inherit); }
.am-compare .am-compare__text:empty::before { content: "nothing was said"; ${MUTED} font-style: italic; }
.am-compare mark.am-compare__differs { color: inherit; border-radius: 2px; text-decoration: underline; text-decoration-thickness: 2px;
  text-underline-offset: 3px; text-decoration-color: var(--jp-warn-color1, #b8762a); background: rgba(184, 118, 42, .18); }
.am-compare--plain mark.am-compare__differs { text-decoration: none; background: none; }
.am-compare :is(select, input, .am-compare__text, .am-compare__prompt):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
`;
