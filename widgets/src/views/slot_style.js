// What the slot tabs look like.

import { ACCENT, CONTROL_EDGE, EDGE, FOCUS_RING, HOVERED, MUTED, TEXT } from "./styles.js";

export const STYLE = `
.am-tabs { ${TEXT} margin: 4px 0; max-width: 760px; }
.am-tabs [hidden] { display: none !important; }
.am-tabs .am-tabs__head { ${MUTED} margin: 0 0 6px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__list { max-height: 22em; overflow: auto; padding: 3px; border-radius: 4px;
  border: ${EDGE}; }
.am-tabs .am-tabs__tab { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 12px; cursor: pointer;
  padding: 4px 8px; border-radius: 3px; border-inline-start: 3px solid transparent; }
.am-tabs .am-tabs__tab:hover { ${HOVERED} }
.am-tabs :focus-visible { ${FOCUS_RING} outline-offset: -1px; }
.am-tabs .am-tabs__tab[aria-selected="true"] { ${HOVERED}
  border-inline-start-color: ${ACCENT}; }
.am-tabs .am-tabs__tab[aria-selected="true"] .am-tabs__name { font-weight: 600; }
.am-tabs .am-tabs__name { flex: 1 1 12em; min-width: 0; overflow-wrap: anywhere; }
.am-tabs .am-tabs__branch { white-space: pre; ${MUTED} font-weight: 400; }
.am-tabs .am-tabs__mode { margin-inline-start: 6px; padding: 0 5px; border-radius: 3px; font-size: .85em; font-weight: 400;
  white-space: nowrap; border: ${EDGE}; }
.am-tabs .am-tabs__facts { font-variant-numeric: tabular-nums; white-space: nowrap; }
.am-tabs .am-tabs__facts, .am-tabs .am-tabs__from { font-size: .9em; ${MUTED} }
.am-tabs .am-tabs__from { flex-basis: 100%; padding-inline-start: calc(1.2em * var(--am-depth, 0)); overflow-wrap: anywhere; }
.am-tabs .am-tabs__tab:is(:hover, [aria-selected="true"]) :is(.am-tabs__facts, .am-tabs__from, .am-tabs__branch) { color: inherit; }
.am-tabs .am-tabs__bar, .am-tabs .am-tabs__form { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 6px 0 0; }
.am-tabs .am-tabs__on { min-width: 0; max-width: 100%; overflow-wrap: anywhere; }
.am-tabs .am-tabs__button, .am-tabs .am-tabs__field { font: inherit; color: inherit; padding: 2px 9px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-tabs .am-tabs__field { min-width: 0; max-width: 100%; box-sizing: border-box; }
.am-tabs input[type="number"].am-tabs__field { width: 6em; }
.am-tabs .am-tabs__button { cursor: pointer; }
.am-tabs .am-tabs__button:hover { ${HOVERED} }
.am-tabs .am-tabs__notice { display: inline; margin: 0; margin-inline-end: 8px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__notice--refused { color: var(--jp-error-color1, inherit); }
.am-tabs .am-tabs__said { margin: 6px 0 0; min-height: 1.4em; }
`;
