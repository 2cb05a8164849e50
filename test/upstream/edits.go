package main

import (
	"slices"
	"strings"
)

// aliased are the declarations that come from client-go itself, by testdata/adapters/both.
const aliased = `DeltaType Delta Deltas DeletedFinalStateUnknown KeyListerGetter KeyLister KeyGetter TransformFunc
	PopProcessFunc ProcessBatchFunc Queue QueueWithBatch ErrFIFOClosed ReplacedAllInfo BookmarkInfo SyncAllInfo
	Store Transaction TransactionType TransactionError TransactionStore KeyFunc KeyError ExplicitKey
	Indexer IndexFunc Indexers ReflectorStore ReflectorBookmarkStore TransformingStore ResourceVersionUpdater DoneChecker
	Lister Watcher ListerWithContext WatcherWithContext ListerWatcher ListerWatcherWithContext ErrZeroLengthDeltasObject`

// takes reports whether a suite has a file of tools/cache. The queues' tests are a suite of their own, without client-go's
// queues. The other suite excludes tests that run no code of kuberewind.
func takes(suite, name string) bool {
	if suite == "fifo" {
		return slices.Contains([]string{"delta_fifo_test.go", "the_real_fifo_test.go", "fifo_test.go", "main_test.go"}, name)
	}
	unrelated := []string{
		"the_real_fifo_test.go", "heap_test.go", "identity_test.go", "retry_with_deadline_test.go", "wait_test.go",
		"object-names_test.go", "event_handler_name_test.go", "expiration_cache_test.go", "listwatch_test.go",
		"processor_listener_test.go", "reflector_data_consistency_detector_test.go",
	}
	return !strings.Contains(name, "_bench_test") && !slices.Contains(unrelated, name)
}

// edits are pairs of a text in a file and its replacement, so that a test asks an adapter instead of a field.
func edits(suite string) map[string][]string {
	if suite == "fifo" {
		return map[string][]string{
			"the_real_fifo_test.go": {
				"fWithKnownObjects.items", "fWithKnownObjects.getItems()",
				"len(f.items)", "len(f.getItems())",
				"extra deltas (empty map), got %#v\", f.items)", "extra deltas (empty map), got %#v\", f.getItems())",
				"f.batchSize = tc.batchSize", "f.setBatchSize(t, tc.batchSize)",
			},
			"delta_fifo_test.go": {
				"fWithKnownObjects.items", "fWithKnownObjects.heldByKey()",
				"fWithoutKnownObjects.items", "fWithoutKnownObjects.heldByKey()",
				"f.items", "f.heldByKey()",
				"len(f.queue)", "len(f.listKeys())",
			},
		}
	}
	return map[string][]string{
		"reflector.go": {
			"func (r *Reflector) ListAndWatchWithContext(", "func (r *Reflector) theirListAndWatchWithContext(",
			"func (r *Reflector) RunWithContext(", "func (r *Reflector) theirRunWithContext(",
			"func (r *Reflector) LastSyncResourceVersion(", "func (r *Reflector) theirLastSyncResourceVersion(",
			"\tuseWatchList bool\n}", "\tuseWatchList bool\n\n\tbridge bridge\n}",
			"\tif r.name == \"\" {\n\t\tr.name = naming", "\tr.bridge.backoff = options.Backoff\n\tr.bridge.expected = expectedType\n\tif r.name == \"\" {\n\t\tr.name = naming",
		},
		"controller.go": {"func newQueueFIFO(", "func theirQueueFIFO("},
		"store.go":      {"func NewStore(", "func theirStore(", "func NewIndexer(", "func theirIndexer("},
		"thread_safe_store_test.go": {
			"NewThreadSafeStore(Indexers{}, Indices{}).(*threadSafeMap)", "newThreadSafe(Indexers{})",
			"\tindices := Indices{}\n\tstore := NewThreadSafeStore(indexers, indices).(*threadSafeMap)", "\tstore := newThreadSafe(indexers)",
			"set, present := store.index.indices[testIndexer][testKey]", "set, present := store.present(testIndexer, testKey)",
			"set, present := store.index.indices[testIndexer][testIndex]", "set, present := store.present(testIndexer, testIndex)",
			"store.index.indices[testIndexer][testKey]", "store.set(testIndexer, testKey)",
			"store.index.indices[testIndexer][testIndex]", "store.set(testIndexer, testIndex)",
			"store.index.indices[testIndexer][key]", "store.set(testIndexer, key)",
		},
	}
}
