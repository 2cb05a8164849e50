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

// Owner is the header of a spool: the owner of the entries, and the head of the record when the spool got its identity.
type Owner struct {
	Cluster string `json:"cluster"`
	Key     []byte `json:"key"`   // fingerprint of the key that hides values (I9)
	ID      []byte `json:"id"`    // identity of the spool; each commit writes it
	Head    []byte `json:"head"`  // digest of the head before any commit has written the identity
	First   uint64 `json:"first"` // number of the first entry under this identity
}

// NewOwner returns an owner with a new identity for a spool.
func NewOwner(clusterUID string, key, head []byte) Owner {
	id := uuid.New()
	return Owner{Cluster: clusterUID, Key: key, ID: id[:], Head: head}
}

// Begin begins an empty spool under this identity.
func (o Owner) Begin(s *spool.Spool) error {
	o.First = s.Next()
	header, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return s.Renew(header)
}

// ID returns the identity of a spool.
func ID(s *spool.Spool) ([]byte, error) {
	var o Owner
	err := json.Unmarshal(s.Header(), &o)
	return o.ID, err
}

// These errors say why a spool cannot be used.
var (
	ErrOvertaken  = errors.New("another recorder has written to the record since, the database has lost commits, or it is another record; the spool's entries cannot follow")
	ErrForeign    = errors.New("it belongs to another cluster, or was written with another redaction key")
	ErrUnreadable = errors.New("it cannot be read")
)

// Spool is the part of a spool that FirstUnrecorded needs.
type Spool interface {
	Header() []byte
	Begun() uint64
	First() uint64
}

// FirstUnrecorded returns the first entry that is not on record (I7). The error is ErrForeign, ErrOvertaken or ErrUnreadable.
//
// A commit writes the spool's identity and offset to the head before the queue removes its entries. If the head has
// another identity, its digest decides. If the digest is still the one from when the spool got its identity, none of
// its entries is on record. Any other digest means that another writer has written. If the spool began after the noted
// offset, the database has lost commits.
func FirstUnrecorded(s Spool, owner Owner, head []byte, noted postgres.Offset) (uint64, error) {
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
		// Nothing is known about the missing entries, and the entries after them would move the positions past them.
		return 0, fmt.Errorf("%w: its beginning is missing, from entry %d to %d", ErrUnreadable, from, s.First())
	}
	return from, nil
}
