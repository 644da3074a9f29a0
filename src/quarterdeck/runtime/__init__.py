"""What every process of ours needs: tasks, locks, files, child processes, a web server, logs."""
