"""The building blocks of our processes: tasks, files and locks, child processes, a web server,
logs.
"""
