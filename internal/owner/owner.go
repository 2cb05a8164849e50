// Package owner reads who owns an object.
//
// Its result stands in lives, so all writers and readers of that read it here. It gives each UID as PostgreSQL's text can hold
// it. An owner without a UID is left out: nothing can be found by it.
package owner

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// UIDs gives the UIDs of the ownerReferences, the controller's first; nil for none.
func UIDs(object patch.Doc) (uids []string) {
	references, _ := patch.Get(object, "/metadata/ownerReferences")
	for _, reference := range patch.Members(references) {
		value, _ := patch.Get(reference, "/uid")
		text, ok := patch.Unquote(value)
		if !ok || len(text) == 0 {
			continue
		}
		uid := strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
		if controller, _ := patch.Get(reference, "/controller"); string(controller) == "true" {
			uids = slices.Insert(uids, 0, uid)
		} else {
			uids = append(uids, uid)
		}
	}
	return uids
}
