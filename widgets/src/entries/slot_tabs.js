import { live } from "../live/live.js";
import { slotTabs } from "../views/slot_tabs.js";

export default live(slotTabs);
