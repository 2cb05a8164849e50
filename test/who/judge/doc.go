// Package judge compares the field managers that a record names with an API server's audit log. It takes nothing of the recorder's
// rules: what it knows of managedFields it reads from the answers in the log. It does no I/O but what it reads and prints.
//
// # What it guarantees
//
//   - The truth is the request's fieldManager. Without one, it is the user agent up to its first slash.
//   - Each delta that names a manager must join exactly one request by UID and resource version. A delta that joins none is wrong. A delta
//     that joins several is wrong, too.
//   - A request that changed nothing is answered with a version that another request wrote. Such a request is no
//     writer. It named that version. Or it was received after the answer to another. Or another had named an older version: that one wrote.
//   - An update took a field if the entry of its manager is new, is later, or owns a path that it did not own in the version before. At
//     least 98 % of these updates must be named.
//   - A hint is counted right or wrong. It fails nothing.
//
// # What it leaves out
//
//   - An answer to the subresource scale has no managedFields, so the log does not say whether it took a field. Its name is judged.
//   - Some logs keep no bodies of some resources. Their deltas are counted, and not judged.
//   - The last line of a log may still be being written.
//
// # What it rejects
//
// A log in which a line is no event of audit.k8s.io/v1, and a record in which no update took a field: it proves nothing.
package judge
