// Package timeline serves the data of the timeline page: an http.Handler for GET /timeline/v1/…, which reads the records of
// clusters.
//
// # What it guarantees
//
//   - It only reads, with the rights of an auditor (I10). It does not authenticate: the listener in front of it does.
//   - Every answer carries the seq at which the record ended, the revision of its past, and what is incomplete in it.
//   - An answer cuts a list only with a number or a cursor. If a count takes too long, the answer holds a part of it; a period of
//     kind "unread" names the uncounted rest.
//   - Counts are those of the SQL in docs/timeline.md. The tests compare them.
//   - Caches never keep answers: Cache-Control is no-store, and there is no ETag. Answers are compressed if the client accepts
//     gzip.
//
// # What it rejects, and why
//
// An error is a Status whose message says what to do. Unknown parameters are errors, so that a misspelt filter does not count
// everything. If the database does not answer, the Status is 503.
//
// # Goroutines and knobs
//
// A request runs on its own goroutine, and ends with its context. Patience is the only knob.
//
// A Handler keeps up to four lists of troubles for each cluster, each of at most 5,000 objects (internal/troubles).
package timeline
