package rollback

import (
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
)

// history says in which history a stream is. Streams.mu protects it.
type history struct {
	number     int                // the number of this history: how many have ended for the stream, or may have
	rolledBack bool               // the history is no more, and the stream was not listed since
	proof      string             // why the last history ended
	gap        deltafifo.Begin    // where the gap begins
	unmatched  unmatchedRollbacks // past rollbacks that are not matched yet: were they of its etcd?
}

// isCurrent reports whether the stream is still in the history of that number.
func (h *history) isCurrent(number int) bool { return !h.rolledBack && h.number == number }

// certain reports whether no rollback of the stream's history is known. As long as a past rollback is unmatched,
// that is not certain.
func (h *history) certain() bool { return !h.rolledBack && len(h.unmatched) == 0 }

// rollBack notes that the history is no more.
func (h *history) rollBack(proof string) {
	h.rolledBack, h.proof, h.unmatched = true, proof, nil
	h.number++
}

// evidence proves that a history is no more. If proof is empty, nothing proves that.
type evidence struct {
	proof       string
	lostVersion servedVersion // the version that was served and is not in etcd
	oldRevision uint64        // a revision of the old history that no other history has
	servedHere  bool          // this process was served that revision
	// servedAt is when it was served, by the record's clock; zero if that is not known.
	servedAt time.Time
	// historyNumber is the number of the old history, among those of the stream.
	historyNumber int
}

// Gap says where the gap of a rolled back stream begins.
type Gap struct {
	Stream *Stream
	Begin  deltafifo.Begin
}
