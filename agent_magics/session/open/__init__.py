"""What one open session holds, who may do what in it, and what people do with its slots."""
