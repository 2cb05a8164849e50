package entries

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/patch"
)

// Owner is the controller of an object. Objects of one owner are siblings.
type Owner struct{ Group, Kind, Name, UID string }

// ownerOf returns the controller in an object's ownerReferences. An object that cannot be decoded has no owner.
func ownerOf(object patch.Doc) Owner {
	references, _ := patch.Get(object, "/metadata/ownerReferences")
	var all []struct {
		APIVersion, Kind, Name, UID string
		Controller                  bool
	}
	if json.Unmarshal(references, &all) != nil {
		return Owner{}
	}
	for _, r := range all {
		if r.Controller {
			return Owner{Group: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group, Kind: r.Kind, Name: r.Name, UID: r.UID}
		}
	}
	return Owner{}
}
