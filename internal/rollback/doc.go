// Package rollback notices that an operator has put an etcd back to an older state, and says what each stream missed by
// that.
//
// A restored etcd numbers new writes with revisions that are already on record. An API server that was not restarted still serves
// the lost versions, and its watches stay quiet. So this package keeps some of the versions that
// the API server served, and asks etcd whether it still holds them. If it does not, that proves a rollback.
//
// The package also knows which stream has which revision. After an expired watch, a recovery skips the revisions of other
// streams in the same etcd (Unaccounted, in stretch.go).
//
// # Glossary
//
// Words for the streams and their versions:
//
//   - stream: one resource that the recorder follows (Stream). A Streams holds all streams of one recorder.
//   - etcd: what the recorder knows of one etcd (etcdState). All streams that are known to be in it share that value. I4:
//     resource versions may be compared only within one etcd. The grouping finds out which streams share one (grouping.go,
//     sameetcd.go).
//   - history: all writes of an etcd, in order. A rollback begins another one. Each stream counts its histories (history).
//   - claim: a revision that is a stream's, because the server or the record gave the stream a version of it (claims).
//   - served version: a version of an object that the API server served (servedVersion).
//   - observation: a served version with its stream, its time, and the number of the stream's history (observation).
//   - pause: half a second or more in which no stream of an etcd was served anything (servingPause). An etcd that is put
//     back is away for that long.
//   - progress: the resource version that a stream has reached, and where it began (progress).
//
// Words for the checks:
//
//   - check: one question to etcd, through the API server: did etcd hold this version at this revision? (asker)
//   - result: what etcd answers (lookResult). It is a match, a mismatch, the future (etcd has not reached that revision), or
//     inconclusive (for example, etcd has compacted the revision).
//   - sample: an observation that is to be checked (sample). A sample of a watch is fresh until the next probe takes
//     it. If the server does not answer then, it is pending until there is an answer. A sample of a list, of the record, or
//     from before a pause is pending at once.
//   - glance: a check of the newest version of each etcd, each second (probe.go).
//   - probe: a check of one stream of each etcd, and of the samples, ten seconds after the last one (probe.go, lookback.go).
//   - settled: said of a version that etcd held at two checks, the second five seconds or more after it was served. The
//     second check may find a later version (etcdState.settled). A gap may begin at a settled version.
//   - verified: a time up to which the newest version and the checked samples have an answer (Verified). It goes on record.
//
// Words for a rollback:
//
//   - rollback: an etcd was put back to an older state. On record, its cause is history_reversed. In sink/postgres and
//     history it is a reversal, because in a database a transaction is rolled back.
//   - lost version: a version that the API server served, and that is no longer in etcd (lostVersion).
//   - proof: the text that says why a history is no more. It goes on record with the gap.
//   - evidence: a proof, with the version and the times that the gaps need (evidence).
//   - event: one rollback, with all streams that it concerns (event).
//   - rolled back: the state of a stream after a rollback, until a trusted list is complete.
//   - past rollback: a rollback that was found before a stream was opened. It is unmatched until the package knows whether
//     the stream was in that etcd (pastrollbacks.go).
//   - recall: to take over what an earlier recorder has recorded or spooled of a stream (Recall).
//
// Words for the lists after it:
//
//   - history ring: some of the observations of an etcd, 600 at most (historyRing). They locate the fork.
//   - fork: where the old history and the new one part (fork).
//   - window: how far back the API server's watch cache can be watched (cacheWindow).
//   - trust: what must be shown before a list counts (trust). A cache check shows that the watch cache was filled from the
//     new history (cacheCheck).
//   - source of a list: a new cache, a cache against which nothing speaks, or etcd itself (listSource).
//
// # How a rollback is found
//
//	          Saw, Listed            probe
//	served ───────────────▶ sample ─────────▶ check ──┬──▶ match: etcd held the version
//	                           ▲                      ├──▶ inconclusive: the check proves nothing
//	                           │                      ├──▶ mismatch: proof of a rollback
//	                           │                      ├──▶ future: proof of a rollback
//	                           └────── no answer ─────┘
//
// The samples are the newest version of each etcd, the newest before each pause, and the newest of each list. At most 24 of
// those served since the last probe come on top. In addition, each stream is checked before each list, and before each watch
// that no list precedes (CheckRollback).
//
// Each commit records up to when the newest version and the checked samples had an answer. An earlier recorder may not have
// checked what it recorded after that time. So a recorder that starts checks those versions.
//
// # What a proof does
//
//	followed ────proof────▶ rolled back ────trusted list────▶ followed
//
// One proof rolls back every stream that is not proved to be in another etcd. One entry of the queue opens the gaps
// of all these streams, in one transaction (rollback.go). Each gap begins at a settled version. If there is none, it
// begins where this process began the stream. If the evidence is older, it begins at the evidence. A stream that is
// opened later first asks whether it was in that etcd.
//
// A list is trusted if the API server's cache is shown to be of the new history (firstpage.go, cachecheck.go). If that takes
// long, the operator has to restart the kube-apiserver.
//
// # Files
//
//   - streams.go: Streams and Stream. revisions.go, lists.go and recall.go: what a stream is given.
//   - claims.go, progress.go, following.go, lists.go, history.go, version.go, samples.go, trust.go: what a stream knows.
//   - etcd.go, verified.go: what is known of one etcd. grouping.go, sameetcd.go: which streams are in it.
//   - ask.go, content.go: the questions to etcd.
//   - probe.go, lookback.go, comparison.go: the checks. depth.go: how much history each etcd keeps.
//   - rollback.go, pastrollbacks.go: what follows from a proof.
//   - firstpage.go, trust.go, cachecheck.go, window.go: when a list is trusted again.
//   - stretch.go: which revisions a recovery need not look at.
//
// # The lock
//
// Streams.mu protects what the streams know. A function whose name ends in Locked is called with Streams.mu held. So are the
// methods of plain data: claims, progress, following, history, living, sampleSet, cacheWindow, historyRing. An asker needs no
// lock. No function asks the server while it holds Streams.mu.
package rollback
