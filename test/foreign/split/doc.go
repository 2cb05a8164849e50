// Package split is a proxy that splits what clients ask of one API server. Writes go to the real one. Reads go to the API of its past, at the end of
// the record. So test suites that write first and then read become tests of the API of the past.
//
// # What it guarantees
//
//   - A read sees each write whose answer came through the proxy before it, of any client. The proxy holds the read until the
//     record has the write: the stream has reached the version of the answer. After a delete, it has the end of the object, or
//     its deletionTimestamp.
//   - After a CustomResourceDefinition was written, a read of discovery or of OpenAPI waits until the record's is that of the definition.
//   - Reviews of access are reads, although they are POSTs. Those of tokens go to the real server.
//   - A write is not changed. Its answer comes as JSON, never as protobuf: the proxy reads the version in it.
//
// # What it rejects, and why
//
//   - A read that waits for longer than 30 seconds gets 504: the record lacks a write.
//
// # What it does not know
//
//   - The user. The handler of the past decides who may read; the real server decides on writes.
//   - Writes that do not come through it, such as those of controllers.
//
// # Goroutines
//
// None of its own.
package split
