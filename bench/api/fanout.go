package api

// watchers is how many clients watch at one time.
const watchers = 100
