// What the token budget looks like.

import { MUTED, TEXT } from "./styles.js";

export const STYLE = `
.am-budget { ${TEXT} margin: 4px 0; max-width: 760px; }
.am-budget p.am-budget__head, .am-budget p.am-budget__notes { margin: 0; overflow-wrap: anywhere; }
.am-budget .am-budget__notes { ${MUTED} font-size: .9em; }
.am-budget .am-budget__bar { position: relative; display: flex; height: 16px; margin: 6px 0 4px; border-radius: 3px;
  background: var(--jp-layout-color2, rgba(128, 128, 128, .2));
  box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-budget .am-budget__part { min-width: 2px; }
.am-budget .am-budget__part:first-child { border-radius: 3px 0 0 3px; }
.am-budget .am-budget__frees { position: absolute; bottom: -5px; height: 3px; border-radius: 2px;
  background: var(--jp-success-color0, #2f8f4f); }
.am-budget .am-budget__swatch--answer, .am-budget .am-budget__part--answer {
  background-image: repeating-linear-gradient(90deg, rgba(255, 255, 255, .35) 0 3px, transparent 3px 6px); }
.am-budget .am-budget__figures { display: flex; flex-wrap: wrap; gap: 2px 28px; margin: 2px 0 0; }
.am-budget .am-budget__figure { min-width: 0; overflow-wrap: anywhere; }
.am-budget .am-budget__value { font-weight: 600; font-variant-numeric: tabular-nums; }
.am-budget .am-budget__free { margin-left: auto; }
.am-budget .am-budget__reserve { border-radius: 0 3px 3px 0; }
.am-budget .am-budget__reserve, .am-budget .am-budget__swatch--reserve {
  background: repeating-linear-gradient(135deg, var(--jp-border-color1, rgba(128, 128, 128, .5)) 0 2px, transparent 2px 6px); }
.am-budget .am-budget__mark { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px;
  background: var(--jp-ui-font-color1, currentColor); }
.am-budget ul.am-budget__legend { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 252px), 1fr));
  gap: 2px 16px; list-style: none; margin: 6px 0; padding: 0; }
.am-budget .am-budget__item { display: flex; align-items: baseline; gap: 6px; }
.am-budget .am-budget__swatch { flex: none; width: 10px; height: 10px; border-radius: 2px; }
.am-budget .am-budget__swatch--frees { height: 3px; align-self: center; background: var(--jp-success-color0, #2f8f4f); }
.am-budget .am-budget__swatch--free { box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5));
  background: var(--jp-layout-color2, rgba(128, 128, 128, .2)); }
.am-budget .am-budget__last { display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; align-items: center;
  gap: 3px 8px; margin: 6px 0; font-size: .9em; ${MUTED} }
.am-budget .am-budget__title { grid-column: 1 / -1; }
.am-budget .am-budget__track { height: 8px; border-radius: 2px; background: var(--jp-layout-color2, rgba(128, 128, 128, .2)); }
.am-budget .am-budget__fill { display: block; height: 100%; min-width: 2px; border-radius: 2px; background: #7d7d7d; }
.am-budget .am-budget__fill--after { background: #b8762a; }
.am-budget .am-budget__amount { text-align: right; font-variant-numeric: tabular-nums; }
.am-budget .am-budget__tokens { margin-left: auto; font-variant-numeric: tabular-nums; }
`;
