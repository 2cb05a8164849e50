package rollback

import (
	"github.com/kuberewind/kuberewind/deltafifo"
)

// history is in which history a stream is. Streams.mu protects it.
type history struct {
	number     int                // how many the stream has left, or may have
	rolledBack bool               // it has left its history, and was not listed since
	proof      string             // why it has left the last one
	gap        deltafifo.Begin    // where the gap begins
	unmatched  unmatchedRollbacks // rollbacks found before it was opened, until it is known whether they were of its etcd
}

// is reports whether the stream is still in the history of that number.
func (h *history) isCurrent(number int) bool { return !h.rolledBack && h.number == number }

// certain reports whether the stream is in a history that no rollback is known of. It is not before it is known whether an
// earlier rollback was of its etcd.
func (h *history) certain() bool { return !h.rolledBack && len(h.unmatched) == 0 }

// leave notes that the history is no more.
func (h *history) rollBack(proof string) {
	h.rolledBack, h.proof, h.unmatched = true, proof, nil
	h.number++
}
