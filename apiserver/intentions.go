package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

const (
	// maxWritten is the largest body that API servers accept.
	maxWritten = 3 << 20
	// maxName is the longest name of nearly all kinds.
	maxName = 253
)

// An Intention is a write that a client requested. The server refused it, because the past is read-only.
type Intention struct {
	Cluster       string    `json:"cluster"` // its UID
	Seq           int64     `json:"seq"`     // the seq of the request's instant
	Instant       time.Time `json:"instant"` // the time of the seq
	UserAgent     string    `json:"userAgent"`
	User          string    `json:"user,omitempty"` // of the request's context
	Verb          string    `json:"verb"`           // create, update, patch, delete or deletecollection
	Group         string    `json:"apiGroup,omitempty"`
	Version       string    `json:"apiVersion"`
	Resource      string    `json:"resource"`
	Subresource   string    `json:"subresource,omitempty"`
	Namespace     string    `json:"namespace,omitempty"`
	Name          string    `json:"name,omitempty"` // from the URL, or from the object to create
	GenerateName  string    `json:"generateName,omitempty"`
	LabelSelector string    `json:"labelSelector,omitempty"` // of a deletecollection
	FieldSelector string    `json:"fieldSelector,omitempty"`
	DryRun        bool      `json:"dryRun,omitempty"`
	SHA256        string    `json:"sha256,omitempty"` // of the body, in hexadecimal; none for Secrets, and none without a body
}

// refuse returns the answer to a write. If Options.Intentions is set, it receives the write first.
func (at *instant) refuse(r *http.Request, s *served, info *request.RequestInfo) error {
	if at.cluster.intentions == nil || !writes(info) {
		return at.readOnly(s.GroupResource(), r.Method, "")
	}
	intention, err := at.intention(r, s, info)
	if err != nil {
		return err
	}
	if err := at.cluster.intentions(*intention); err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the past is read-only, and recording the intention failed: %v", err))
	}
	return at.readOnly(s.GroupResource(), r.Method, "; the intention was recorded")
}

// writes reports whether a request is a write. Reviews have the form of a write, and are not.
func writes(info *request.RequestInfo) bool {
	question := info.APIGroup == authenticationv1.GroupName || info.APIGroup == authorizationv1.GroupName
	return !question && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, info.Verb)
}

// readOnly returns the answer to a write.
func (at *instant) readOnly(resource schema.GroupResource, method, more string) error {
	err := apierrors.NewMethodNotSupported(resource, strings.ToLower(method))
	err.ErrStatus.Message = fmt.Sprintf("the past is read-only: this is cluster %s as it was at %s (seq:%d)%s",
		at.cluster.record.Cluster().Name, at.point.Time.UTC().Format(time.RFC3339), at.point.Seq, more)
	return err
}

func (at *instant) intention(r *http.Request, s *served, info *request.RequestInfo) (*Intention, error) {
	body, err := wire.ReadBody(r, maxWritten)
	if err != nil {
		return nil, err
	}
	i := &Intention{
		Cluster: at.cluster.record.Cluster().UID, Seq: at.point.Seq, Instant: at.point.Time.UTC(), UserAgent: r.UserAgent(), Verb: info.Verb,
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource, Name: shorten(info.Name, maxName),
		LabelSelector: info.LabelSelector, FieldSelector: info.FieldSelector, DryRun: r.URL.Query().Get("dryRun") != "",
	}
	if s.Namespaced {
		i.Namespace = info.Namespace
	}
	if caller, ok := request.UserFrom(r.Context()); ok {
		i.User = caller.GetName()
	}
	if len(body) > 0 {
		readInto(i, r, body)
	}
	return i, nil
}

// readInto adds the fields that only the body has. If readInto cannot decode the body, an API server would refuse it, too.
func readInto(i *Intention, r *http.Request, body []byte) {
	if i.Group != "" || i.Resource != "secrets" {
		digest := sha256.Sum256(body)
		i.SHA256 = hex.EncodeToString(digest[:])
	}
	switch i.Verb {
	case "create":
		var object metav1.PartialObjectMetadata
		if decode(r, body, &object) && i.Name == "" {
			i.Name, i.GenerateName = shorten(object.Name, maxName), shorten(object.GenerateName, maxName)
		}
	case "delete", "deletecollection":
		var options metav1.DeleteOptions
		i.DryRun = decode(r, body, &options) && len(options.DryRun) > 0 || i.DryRun
	}
}

// decode reads a body in each format that API servers accept. The scheme knows no type, so decode reads a body of any kind
// into the given object. It finds the metadata of each kind: metadata has one name in JSON and YAML, and one number in
// protobuf.
func decode(r *http.Request, body []byte, into runtime.Object) bool {
	format, err := negotiation.NegotiateInputSerializer(r, false, serializer.NewCodecFactory(runtime.NewScheme()))
	if err != nil {
		return false
	}
	_, _, err = format.Serializer.Decode(body, nil, into)
	return err == nil
}
