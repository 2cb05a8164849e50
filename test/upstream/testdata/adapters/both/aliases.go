package cache

import upstream "k8s.io/client-go/tools/cache"

type (
	DeltaType                = upstream.DeltaType
	Delta                    = upstream.Delta
	Deltas                   = upstream.Deltas
	DeletedFinalStateUnknown = upstream.DeletedFinalStateUnknown
	KeyListerGetter          = upstream.KeyListerGetter
	KeyLister                = upstream.KeyLister
	KeyGetter                = upstream.KeyGetter
	TransformFunc            = upstream.TransformFunc
	PopProcessFunc           = upstream.PopProcessFunc
	ProcessBatchFunc         = upstream.ProcessBatchFunc
	Queue                    = upstream.Queue
	QueueWithBatch           = upstream.QueueWithBatch
	ReplacedAllInfo          = upstream.ReplacedAllInfo
	BookmarkInfo             = upstream.BookmarkInfo
	SyncAllInfo              = upstream.SyncAllInfo
	Store                    = upstream.Store
	Transaction              = upstream.Transaction
	TransactionType          = upstream.TransactionType
	TransactionError         = upstream.TransactionError
	TransactionStore         = upstream.TransactionStore
	KeyFunc                  = upstream.KeyFunc
	KeyError                 = upstream.KeyError
	ExplicitKey              = upstream.ExplicitKey
	Indexer                  = upstream.Indexer
	IndexFunc                = upstream.IndexFunc
	Indexers                 = upstream.Indexers
	ReflectorStore           = upstream.ReflectorStore
	ReflectorBookmarkStore   = upstream.ReflectorBookmarkStore
	TransformingStore        = upstream.TransformingStore
	ResourceVersionUpdater   = upstream.ResourceVersionUpdater
	DoneChecker              = upstream.DoneChecker
	Lister                   = upstream.Lister
	Watcher                  = upstream.Watcher
	ListerWithContext        = upstream.ListerWithContext
	WatcherWithContext       = upstream.WatcherWithContext
	ListerWatcher            = upstream.ListerWatcher
	ListerWatcherWithContext = upstream.ListerWatcherWithContext
)

const (
	Added                 = upstream.Added
	Updated               = upstream.Updated
	Deleted               = upstream.Deleted
	Replaced              = upstream.Replaced
	ReplacedAll           = upstream.ReplacedAll
	Sync                  = upstream.Sync
	SyncAll               = upstream.SyncAll
	Bookmark              = upstream.Bookmark
	TransactionTypeAdd    = upstream.TransactionTypeAdd
	TransactionTypeUpdate = upstream.TransactionTypeUpdate
	TransactionTypeDelete = upstream.TransactionTypeDelete
)

var (
	ErrFIFOClosed             = upstream.ErrFIFOClosed
	ErrZeroLengthDeltasObject = upstream.ErrZeroLengthDeltasObject
)
