"""What agent-magics costs, side by side with a floor measured in the same run."""
