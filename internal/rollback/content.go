package rollback

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/paging"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
)

// comparePage is the page size of the lists that are compared.
const comparePage = 500

// listMatchesEtcd reports whether a list equals the list at exactly its resource version. Etcd answers the second
// one if the API server knows that its cache is wrong, or never uses its cache for such lists.
func (a *asker) listMatchesEtcd(ctx context.Context) (bool, error) {
	at, cached, err := a.digest(ctx, metav1.ListOptions{Limit: comparePage})
	if err != nil {
		return false, err
	}
	_, exact, err := a.digest(ctx, metav1.ListOptions{Limit: comparePage, ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	return cached == exact, err
}

// digest returns a hash of the versions in a list, and the list's resource version. It reads page by page.
func (a *asker) digest(ctx context.Context, options metav1.ListOptions) (at string, digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	var pages paging.Guard
	for {
		list, err := a.listerFor("").ListWithContext(ctx, options)
		if err != nil {
			return "", digest, fmt.Errorf("list %s to compare: %w", a.name, err)
		}
		page, err := meta.ListAccessor(list)
		if err != nil {
			return "", digest, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return "", digest, err
		}
		for _, item := range items {
			o, err := meta.Accessor(item)
			if err != nil {
				return "", digest, err
			}
			fmt.Fprintf(hash, "%s/%s %s %s\n", o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion())
		}
		if at = page.GetResourceVersion(); page.GetContinue() == "" {
			return at, [sha256.Size]byte(hash.Sum(nil)), nil
		}
		if err := pages.Next(page.GetContinue()); err != nil {
			return "", digest, fmt.Errorf("list %s to compare: %w", a.name, err)
		}
		options = metav1.ListOptions{Limit: options.Limit, Continue: page.GetContinue()}
	}
}

// sameMetadata compares the metadata that says when an object was written. Two writes share a revision and these
// times only if they are of two histories. Labels and annotations are no such evidence: redaction rules, erasures
// and a conversion to another served version change them within one history.
func (a *asker) sameMetadata(o *kube.Object, v servedVersion) bool {
	if v.doc == nil || a.canonical == nil {
		return true
	}
	was := v.doc()
	if was == nil {
		return true
	}
	if _, err := a.canonical(o); err != nil {
		return true
	}
	type manager struct {
		Time metav1.Time `json:"time"`
	}
	return fieldMatches[metav1.Time](was, o.Doc(), "/metadata/creationTimestamp") &&
		fieldMatches[metav1.Time](was, o.Doc(), "/metadata/deletionTimestamp") &&
		fieldMatches[int64](was, o.Doc(), "/metadata/generation") &&
		fieldMatches[[]manager](was, o.Doc(), "/metadata/managedFields")
}

// fieldMatches compares two objects at a path. A field that cannot be read was redacted or erased, and proves
// nothing.
func fieldMatches[T any](a, b patch.Doc, path string) bool {
	was, readable := valueAt[T](a, path)
	is, both := valueAt[T](b, path)
	return !readable || !both || reflect.DeepEqual(was, is)
}

// valueAt returns the zero value if the path does not exist.
func valueAt[T any](doc patch.Doc, path string) (value T, readable bool) {
	text, found := patch.Get(doc, path)
	if !found {
		return value, true
	}
	err := json.Unmarshal(text, &value)
	return value, err == nil
}

// writtenAt is the part of an object's metadata that sameMetadata reads.
type writtenAt struct {
	Created  json.RawMessage  `json:"creationTimestamp,omitempty"`
	Deleted  json.RawMessage  `json:"deletionTimestamp,omitempty"`
	Number   json.RawMessage  `json:"generation,omitempty"`
	Managers []writtenManager `json:"managedFields"`
}

type writtenManager struct {
	Time json.RawMessage `json:"time,omitempty"`
}

// reduced returns the version with only the part of its metadata that sameMetadata reads, to save memory.
func (v servedVersion) reduced() servedVersion {
	if v.doc == nil {
		return v
	}
	var kept struct {
		Metadata writtenAt `json:"metadata"`
	}
	doc := v.doc()
	v.doc = nil
	if doc == nil || json.Unmarshal(doc, &kept) != nil {
		return v
	}
	if text, err := json.Marshal(kept); err == nil {
		v.doc = func() patch.Doc { return text }
	}
	return v
}
