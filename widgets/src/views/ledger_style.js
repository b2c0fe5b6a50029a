// What the ledger explorer looks like.

import {
  CODE_FONT,
  CONTROL_EDGE,
  EDGE,
  FOCUS_RING,
  HOVERED,
  MUTED,
  SPOKEN_ONLY,
  TEXT,
} from "./styles.js";

export const STYLE = `
.am-ledger { ${TEXT} margin: 4px 0; }
.am-ledger [hidden][hidden] { display: none; }
.am-ledger p.am-ledger__head { margin: 0 0 6px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.am-ledger .am-ledger__filters { display: flex; flex-wrap: wrap; gap: 4px 12px; margin: 0 0 4px; }
.am-ledger .am-ledger__filter { display: inline-flex; align-items: center; gap: 5px; min-width: 0; max-width: 100%;
  ${MUTED} }
.am-ledger .am-ledger__filter--find { flex: 1 1 160px; }
.am-ledger :is(input, select).am-ledger__field { font: inherit; box-sizing: border-box; height: 26px; min-width: 0; max-width: 16em;
  margin: 0; padding: 1px 6px; border-radius: 3px; color: var(--jp-ui-font-color1, FieldText);
  background: var(--jp-layout-color1, Field); border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .6)); }
.am-ledger input.am-ledger__field[type="number"] { width: 6em; }
.am-ledger .am-ledger__filter--find input.am-ledger__field { flex: 1; max-width: none; }
.am-ledger p.am-ledger__count { margin: 0 0 4px; ${MUTED} font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__event { margin-top: 6px; padding: 6px 10px 10px; border-radius: 3px;
  border: ${EDGE}; }
.am-ledger .am-ledger__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; }
.am-ledger .am-ledger__facts { flex: 1 1 14em; overflow-wrap: anywhere; unicode-bidi: plaintext; font-variant-numeric: tabular-nums; }
.am-ledger p.am-ledger__label { margin: 8px 0 2px; font-size: .9em; ${MUTED} overflow-wrap: anywhere; }
.am-ledger pre.am-ledger__text { margin: 0; padding: 6px 8px; max-height: 360px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; unicode-bidi: plaintext; color: inherit;
  ${CODE_FONT}
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-ledger button.am-ledger__button { font: inherit; color: inherit; cursor: pointer; padding: 2px 10px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-ledger button.am-ledger__button:hover { ${HOVERED} }
.am-ledger pre.am-ledger__text + button.am-ledger__button { margin-top: 4px; }
.am-ledger :is(button, input, select, pre, .am-ledger__grid):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
.am-ledger .am-ledger__spoken { ${SPOKEN_ONLY} }
`;
