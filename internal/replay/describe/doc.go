// Package describe is kubectl's own describe. The API of the past answers its requests, in process.
//
// # What it guarantees
//
//   - Every time is the recorded one. Every age is relative to the instant.
//   - Notes say what is missing: Events that are not on record, gaps, and the values of Secrets.
//
// # How ages are made
//
// kubectl's describe takes no clock: it subtracts a time from now. ages.go lists the times of which it prints the age, and nothing else. They
// are served as far before now as they were before the instant. All others are served as they are. A test describes every object of a
// record, and compares both sorts.
package describe
