// Package schemacheck finds objects whose content differs although their resource versions are the same.
//
// An API server can show a stored object in another form, although the object and its resource version do not change. The cause may be a
// default in its definition, a conversion, another served version or another release of the server. No watch event reports that. So, if
// one of these has changed, the recorder lists the objects and compares them with the recorded ones. This is no relist: the watch goes
// on, and no position moves.
//
// The Comparer compares a stream at once, and again 20 s later, because each API server applies a definition some time after it was
// confirmed. It retries a failed comparison after a minute. [Comparer.Run] belongs to the goroutine that calls it.
package schemacheck
