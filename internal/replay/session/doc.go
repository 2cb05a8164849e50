// Package session is the command session. It creates, moves, plays and ends the sessions of a server, and lists them.
package session
