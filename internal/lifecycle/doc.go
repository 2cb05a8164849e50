// Package lifecycle decides where the record of a resource begins, goes on and ends, as CustomResourceDefinitions come and go.
//
// It is one pure function. [Decide] takes facts and returns what to do. The recorder collects the facts and does it.
// Some facts cost a request to the server or to the database. Decide requests them only if they matter. The recorder
// adds the answer, and decides again.
//
// A definition can go without its objects. The API server deletes the objects because of a finalizer. A user may have
// removed the finalizer. A request that deletes all definitions at once does not set it (Delete of the registry of
// apiextensions-apiserver). The next definition serves the objects again, and no watch from there shows them. So the
// recorder asks the server before a stream goes on as if no object was alive.
//
// # The table
//
// The first row that applies counts. A test has these rows, and compares them with this text.
//
// If the resource is served:
//
//	if                                                                | then
//	a list is due                                                     | list
//	it is new, and objects may have outlived a definition             | list, first_list
//	objects may have outlived a definition                            | list, expired
//	it is new, or its end is on record                                | ask, at the start or the end, the later one
//	it is new, and nothing lived at its start                         | begin at its definition
//	its end is on record, and it began after that                     | begin at its definition
//	its end is on record                                              | resume from the end
//	it was listed under other filter rules                            | list, configuration
//	this process stopped it within a list                             | list, as before
//	its history went backwards                                        | list, history_reversed
//	the spool ends within a list                                      | list, as before
//	the record has an unfinished list, and no position                | list, as before
//	an earlier recorder followed it, and a definition began since     | look up earlier definitions
//	the record of definitions is behind                               | wait, for a minute at most
//	earlier definitions were looked up                                | ask, at the start or the newest version, the later one
//	it was watched to its end, and a definition began since           | ask, at the start
//	an earlier recorder left entries on disk, all before the start    | ask, at the start
//	it is registered with a start, and nothing else is known          | begin at that
//	it was watched to its end, and nothing lived at the start         | begin at its definition
//	the record has the end of all earlier definitions, nothing lived  | begin at its definition
//	it has a position                                                 | resume from it
//	none of these                                                     | list, first_list
//
// If it is gone:
//
//	if                                                                | then
//	its end is on record                                              | nothing
//	it was watched to the end of its definition, and nothing is alive | complete
//	the end is known, and a list was due                              | replace, with the cause of that list
//	the end is known, and comes after the position                    | replace, not_found
//	an open gap already says that it cannot be followed               | nothing
//	none of these                                                     | interrupt, not_found
//
// Without a definition, or after a rollback, the end is not known.
package lifecycle
