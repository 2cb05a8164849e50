// Package owner reads the owners of an object.
//
// The table lives holds its result, so all writers and readers of that table use this package. It returns each UID in a form that PostgreSQL's
// text can hold. It skips an owner without a UID, because no query can find an object by it.
package owner

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// UIDs returns the UIDs of the ownerReferences, the controller's first, or nil for none.
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
