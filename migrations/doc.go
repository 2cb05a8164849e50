// Package migrations makes and changes the schema kuberewind: the tables of the record, and the views that are its
// public surface.
//
// # What it guarantees
//
//   - A migration is applied completely or not at all. Each file is sent as one multi-statement query, which PostgreSQL
//     runs as one transaction. It replaces the function schema_version(), and every decision here relies on that
//     function. The package does not trust golang-migrate's table: golang-migrate writes it before and after the file,
//     so it says "dirty" after any interruption. So a killed migration needs no repair: the next [Up] continues from
//     the applied version.
//   - Migrators exclude each other by golang-migrate's advisory lock. Each reads the version again once it holds the
//     lock. Any login of the database can hold that lock. So an up-to-date schema needs no lock: Up only reads the
//     version, and Roles retries after a collision.
//   - A migration that waits for a lock gives up after five seconds and retries. It blocks no recorder and no reader
//     for longer. So a migration that needs a table to itself must do no other long work: each attempt would repeat it.
//   - If its context ends, Up or Down cancels the running statement on the server before it returns.
//
// # What it rejects, and why
//
//   - A schema that is newer than this program ([ErrNewer]): this program may not know its meaning.
//   - A schema from 1 to 105 ([ErrUnreleased]): development builds made those, and no migration leads from them to 110.
//   - A schema of another role, or with an object of another role in it ([ErrNotOwner]): code in it would run as the
//     recorder. A superuser does not even read the version of another role's schema.
//   - Down on a record that holds deltas ([ErrFilled]), unless forced: they cannot be restored.
//   - PostgreSQL before 15, which is not tested.
//   - A database whose encoding is not UTF8: it cannot hold Kubernetes' texts.
//
// The URL must lead to the server itself: session locks do not work through a pooler in transaction mode.
//
// # Roles
//
// [Roles] makes four group roles and gives them their rights. Roles belong to the whole server, so this package never
// drops them.
//
//   - kuberewind_writer may add to the record, move its heads, streams, days and ends of gaps, and record which lives
//     have ended. It cannot change or remove a delta, or drop a partition (I8). It owns nothing: ensure_day() makes
//     partitions for it, as the owner. It may make and drop checkpoints, which are derived from the rest. Only this
//     role may take the leadership of a cluster (internal/election).
//   - kuberewind_auditor may only read the views and call the functions that read them. Views run as their owner,
//     functions as their caller.
//   - kuberewind_pruner may drop the oldest days, through functions that check whether that is safe. It may also read
//     the list of dropped days.
//   - kuberewind_counter may read the views that the timeline counts from, and write the table activity. The writer is
//     a member of it.
//
// A recorder calls [BecomeWriter] on each new connection. So it gives up its other rights even if it logs in as the
// owner. That protects against mistakes, but not against a stolen password. For that, let the recorder log in as a
// member of kuberewind_writer that is neither owner nor superuser, and run the migrations with another URL.
//
// # Goroutines
//
// No goroutine outlives a call.
//
// # Files
//
// Numbers begin at 110, one file up and one down for each topic: tables, circumstances, surface, coverage, programs,
// patch, instants, replay, retention, erasure, activity. The first has the tables that the guard of Down reads. Changes
// of a release get the next number, and replace schema_version().
package migrations
