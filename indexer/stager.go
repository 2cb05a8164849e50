package indexer

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// A change is a change of one key.
type change struct {
	key    string
	entry  *entry    // nil removes the key
	rv     *string   // nil keeps the store's
	doc    patch.Doc // the text of entry, until it is indexed
	values map[*index][]string
}

// A stager makes changes of objects. It does all work that needs no access to the store.
type stager struct {
	keyFunc cache.KeyFunc
	codec   *codec
	packer  packer
}

func (s *stager) stage(obj any) (change, error) {
	doc, err := docOf(obj)
	if err != nil {
		return change{}, err
	}
	metadata, err := metadataOf(doc)
	if err != nil {
		return change{}, err
	}
	key, err := s.key(obj, doc, metadata)
	if err != nil {
		return change{}, err
	}
	return s.stageDoc(key, text(metadata, "/resourceVersion"), doc)
}

func (s *stager) stageDoc(key, rv string, doc patch.Doc) (change, error) {
	if err := s.codec.check(key, doc); err != nil {
		return change{}, err
	}
	return change{key: key, entry: s.packer.pack(key, doc), rv: &rv, doc: doc}, nil
}

func (s *stager) stageDelete(obj any) (change, error) {
	key, rv, err := s.identity(obj)
	return change{key: key, rv: rv}, err
}

// identity returns the key and the resource version of an object or a tombstone. The object need not be one that can be
// stored. The version is nil if there is none.
func (s *stager) identity(obj any) (key string, rv *string, err error) {
	if !isText(obj) {
		key, err = s.key(obj, nil, nil)
		if accessor, failed := meta.Accessor(obj); failed == nil && err == nil {
			version := accessor.GetResourceVersion()
			rv = &version
		}
		return key, rv, err
	}
	doc, err := docOf(obj)
	var metadata patch.Doc
	if err == nil {
		metadata, err = metadataOf(doc)
	}
	if err != nil {
		return "", nil, cache.KeyError{Obj: obj, Err: err}
	}
	version := text(metadata, "/resourceVersion")
	key, err = s.key(obj, doc, metadata)
	return key, &version, err
}

// key returns the key of an object. If the object is a text, doc and metadata are that text.
func (s *stager) key(obj any, doc, metadata patch.Doc) (key string, err error) {
	switch {
	case isText(obj) && s.keyFunc == nil:
		return joined(text(metadata, "/namespace"), text(metadata, "/name")), nil
	case isText(obj):
		var partial metav1.PartialObjectMetadata
		if err = json.Unmarshal(doc, &partial); err == nil {
			key, err = s.keyFunc(&partial)
		}
	case s.keyFunc == nil:
		key, err = cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	default:
		key, err = s.keyFunc(obj)
	}
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}
