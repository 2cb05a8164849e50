package deltafifo

import (
	"k8s.io/apimachinery/pkg/types"
)

// identified is an object with the identity of a version.
type identified interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// digested is an object with a digest of its content.
type digested interface {
	Digest() [16]byte
}

// difference is how an object on a list differs from the state before.
type difference int

const (
	same          difference = iota
	changed                  // another version
	reinterpreted            // the same version with other content: the schema or the server has changed
	recreated                // another object under the same name
)

// compare returns how an object in a list differs from its state before.
func compare(before, after any) difference {
	old, ok1 := before.(identified)
	item, ok2 := after.(identified)
	switch {
	case !ok1 || !ok2:
		return changed
	case old.GetUID() != item.GetUID(): // I5: an object is its UID.
		return recreated
	case old.GetResourceVersion() != item.GetResourceVersion():
		return changed
	}
	return compareContent(before, after, item.GetResourceVersion() != "")
}

// compareContent compares the content of one version. Without digests, an equal resource version counts as equal
// content.
func compareContent(before, after any, versioned bool) difference {
	old, ok1 := before.(digested)
	item, ok2 := after.(digested)
	switch {
	case ok1 && ok2 && old.Digest() == item.Digest():
		return same
	case ok1 && ok2 && versioned:
		return reinterpreted
	case versioned:
		return same
	}
	return changed
}

// identity is the part of an object that a list is compared with, without its text.
type identity struct {
	uid    types.UID
	rv     string
	digest [16]byte
}

// GetUID returns the object's UID.
func (i identity) GetUID() types.UID { return i.uid }

// GetResourceVersion returns the object's resource version.
func (i identity) GetResourceVersion() string { return i.rv }

// Digest returns the digest of the object's text.
func (i identity) Digest() [16]byte { return i.digest }

func identityOf(obj any) any {
	o, ok := obj.(interface {
		identified
		digested
	})
	if !ok {
		return obj
	}
	return identity{o.GetUID(), o.GetResourceVersion(), o.Digest()}
}
