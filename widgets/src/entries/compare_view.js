import { live } from "../live/live.js";
import { compareView } from "../views/compare_view.js";

export default live(compareView);
