"""The commands of the bot, a module for each group of them; `table` has all."""
