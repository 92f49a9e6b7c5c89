"""Programs on other machines and phones: devices, how they are reached, and what runs there."""
