package rollback

import (
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
