import { live } from "../live/live.js";
import { tokenBudget } from "../views/token_budget.js";

export default live(tokenBudget);
