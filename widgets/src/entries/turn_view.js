import { liveTurns } from "../live/live_turns.js";
import { turnView } from "../views/turn_view.js";

export default liveTurns(turnView);
