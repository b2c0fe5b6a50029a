import { liveLedger } from "../live/live_ledger.js";
import { ledgerExplorer } from "../views/ledger_explorer.js";

export default liveLedger(ledgerExplorer);
