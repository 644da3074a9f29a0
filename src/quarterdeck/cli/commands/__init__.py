"""The commands of the hub: names, options and help texts, one module for each subject."""
