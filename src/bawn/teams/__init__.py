"""Who runs inside: agent presets (`presets`), and foreign formats that bawn speaks (`aoa`)."""
