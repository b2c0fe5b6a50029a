"""What people add to an agent: plugins and their hooks, skills, installed packages."""
