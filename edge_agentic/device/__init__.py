"""What the machine is: facts and profiles."""
