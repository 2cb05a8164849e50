package spooling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Owner is the header of a spool: whose entries these are, and where the record was when the spool got its identity.
type Owner struct {
	Cluster string `json:"cluster"`
	Key     []byte `json:"key"`   // fingerprint of the key with which values were hidden (I9)
	ID      []byte `json:"id"`    // identity of the spool; each commit writes it
	Head    []byte `json:"head"`  // digest of the head before any commit has written the identity
	First   uint64 `json:"first"` // number of the first entry under this identity
}

// NewOwner gives a spool an identity.
func NewOwner(clusterUID string, key, head []byte) Owner {
	id := uuid.New()
	return Owner{Cluster: clusterUID, Key: key, ID: id[:], Head: head}
}

// Begin begins a spool that is empty, under this identity.
func (o Owner) Begin(s *spool.Spool) error {
	o.First = s.Next()
	header, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return s.Renew(header)
}

// ID is the identity of a spool.
func ID(s *spool.Spool) ([]byte, error) {
	var o Owner
	err := json.Unmarshal(s.Header(), &o)
	return o.ID, err
}

// Why a spool cannot be used.
var (
	ErrOvertaken  = errors.New("another recorder has written to the record since, the database has lost commits, or it is another record; nothing can be appended behind that")
	ErrForeign    = errors.New("it is of another cluster or was written with another redaction key")
	ErrUnreadable = errors.New("it cannot be read")
)

// Spool is what Start needs of a spool.
type Spool interface {
	Header() []byte
	Begun() uint64
	First() uint64
}

// Start is the first entry that is not on record (I7). The error is ErrForeign, ErrOvertaken or ErrUnreadable.
//
// Each entry is noted in the head before it leaves the queue, by a commit that writes the spool's identity. If the head notes another
// identity, no entry has left while the head is what it was when the spool got its identity. Any other head means that another
// writer has written. If the spool began behind what is noted, the database has lost commits.
func Start(s Spool, owner Owner, head []byte, noted postgres.Offset) (uint64, error) {
	var was Owner
	if err := json.Unmarshal(s.Header(), &was); err != nil || was.Cluster != owner.Cluster || !bytes.Equal(was.Key, owner.Key) || len(was.ID) == 0 {
		return 0, ErrForeign
	}
	from := noted.Next
	if !bytes.Equal(was.ID, noted.Spool) {
		if !bytes.Equal(was.Head, head) {
			return 0, ErrOvertaken
		}
		from = was.First
	}
	if from < s.Begun() {
		return 0, ErrOvertaken
	}
	if from < s.First() {
		// Of what is missing nothing can be told, and what comes after it would move the positions past it.
		return 0, fmt.Errorf("%w: its beginning is missing, from entry %d to %d", ErrUnreadable, from, s.First())
	}
	return from, nil
}
