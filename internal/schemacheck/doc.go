// Package schemacheck finds objects that look different though their resource versions are the same.
//
// An API server can show a stored object in another form, though the object and its resource version do not change. A default in
// its definition, a conversion, another served version or another release of the server may do so. No watch tells that. So, when
// something that decides the form has changed, the recorder lists the objects and compares them with what is known. The list is
// no relist: the watch goes on, and no position moves.
//
// A stream is compared at once, and again 20 s later: each API server takes over a definition some time after it was confirmed. A
// comparison that fails is tried again after a minute. [Comparer.Run] belongs to the goroutine that calls it.
package schemacheck
