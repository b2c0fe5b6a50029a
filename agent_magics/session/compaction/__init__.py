"""What makes a conversation fit: checkpoints, shorter requests, summaries, bridges."""
