package verify

import (
	"context"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/paging"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
)

// listed holds the compared parts of a list.
type listed struct {
	rv          string
	masked      bool
	objects     map[string]listedObject // by UID
	undecodable []error
}

type listedObject struct {
	namespace, name, rv string
	digest              [16]byte
}

// pageSize is the page size of client-go.
const pageSize = 500

// list lists a resource with the recorder's client. All pages have the resource version of the first page.
func (c *comparer) list(ctx context.Context, s *history.Stream) (*listed, error) {
	resource := kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource, Kind: s.Kind, Namespaced: s.Namespaced}
	lw := c.client.ListWatch(resource, s.Scope)
	hide := c.redaction.redactor.For(s.GroupResource())
	live := &listed{objects: map[string]listedObject{}, masked: hide != nil && c.redaction.masked}
	var pages paging.Guard
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := lw.Page(ctx, options)
		if err != nil {
			return nil, err
		}
		live.rv = page.ResourceVersion
		live.undecodable = append(live.undecodable, page.Undecodable()...)
		for _, o := range page.Items {
			digest, err := digestOf(o, hide, live.masked)
			if err != nil {
				return nil, err
			}
			live.objects[string(o.UID)] = listedObject{namespace: o.Namespace, name: o.Name, rv: o.ResourceVersion, digest: digest}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return live, nil
		}
		if err := pages.Next(options.Continue); err != nil {
			return nil, err
		}
	}
}

func digestOf(o *kube.Object, hide *redact.Resource, masked bool) ([16]byte, error) {
	doc, err := patch.Canonical(o.JSON)
	if err == nil && hide != nil {
		doc, err = hide.Apply(doc, o.Namespace, o.Name)
	}
	if masked {
		doc = mask(doc)
	}
	return patch.Digest(doc), err
}

var hashes = regexp.MustCompile(`hmac-sha256:[0-9a-f]{32}`)

// mask makes all hashes equal, independent of their key.
func mask(doc patch.Doc) patch.Doc {
	return hashes.ReplaceAllLiteral(doc, []byte("hmac-sha256:"))
}
