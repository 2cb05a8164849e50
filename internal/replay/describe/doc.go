// Package describe is kubectl's own describe. The API of the past answers its requests, in the same process.
//
// # What it guarantees
//
//   - Every time is the recorded time. Every age is relative to the instant.
//   - Notes name missing parts: Events that are not on record, gaps, and the values of Secrets.
//
// # How ages are made
//
// kubectl's describe takes no clock: it subtracts a time from now. ages.go lists the times of which it prints only the age.
// The transport moves these times, so that they are as long before now as they were before the instant. It serves all other
// times unchanged. A test describes every object of a record, and compares both kinds.
package describe
