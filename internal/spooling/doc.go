// Package spooling decides whose spool lies in a folder, and from which entry a recorder goes on there.
//
// The header of a spool holds its identity, and each commit writes that identity and the next offset. [Start] compares the two (I7).
// The recorder at its start and "recorder erase" decide by it alike. [Take] waits up to a minute for processes that only read.
package spooling
