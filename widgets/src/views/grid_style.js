// What the event grid looks like.

import { ACCENT, EDGE, MUTED } from "./styles.js";

// In pixels, for what stands where in the grid is reckoned and not measured.
export const ROW_PX = 24;
export const HEAD_PX = 27;

export const STYLE = `
.am-ledger .am-ledger__grid { overflow: auto; overflow-anchor: none; contain: strict; border-radius: 3px;
  border: ${EDGE}; background: var(--jp-layout-color1, transparent); }
.am-ledger .am-ledger__row { display: grid; align-items: center; column-gap: 10px; box-sizing: border-box; padding: 0 8px;
  grid-template-columns: 6ch 10.5ch minmax(4ch, 9ch) 4.5ch 15.5ch minmax(0, 1fr); }
.am-ledger .am-ledger__row--head { position: sticky; top: 0; z-index: 1; height: ${HEAD_PX}px;
  background: var(--jp-layout-color2, Canvas); border-bottom: ${EDGE}; }
.am-ledger .am-ledger__row--head .am-ledger__cell { font-weight: 600; }
.am-ledger .am-ledger__space { position: relative; }
.am-ledger .am-ledger__row--event { position: absolute; left: 0; right: 0; top: 0; height: ${ROW_PX}px; contain: strict; cursor: pointer;
  border-bottom: 1px solid var(--jp-border-color3, rgba(128, 128, 128, .15)); }
.am-ledger .am-ledger__row--event:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .12)); }
.am-ledger .am-ledger__row--event[aria-selected="true"] { background: var(--jp-layout-color2, rgba(128, 128, 128, .2));
  box-shadow: inset 3px 0 0 ${ACCENT}; }
.am-ledger .am-ledger__cell { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: plaintext; }
.am-ledger .am-ledger__row--event:not(:hover, [aria-selected="true"]) .am-ledger__cell:not(.am-ledger__cell--what) {
  ${MUTED} }
.am-ledger .am-ledger__cell--seq, .am-ledger .am-ledger__cell--turn { text-align: right; font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__cell--slot { text-align: left; }
.am-ledger .am-ledger__cell--time { font-variant-numeric: tabular-nums; }
@container (max-width: 620px) {
  .am-ledger .am-ledger__row { grid-template-columns: 6ch 10ch minmax(0, 1fr); }
  .am-ledger :is(.am-ledger__cell--time, .am-ledger__cell--slot, .am-ledger__cell--turn) { display: none; }
}
`;
