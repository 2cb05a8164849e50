package past

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// A Place is the API path that clients use.
type Place struct {
	Context   string // name of the context
	root      string // path of the API
	namespace string
}

// Find resolves an instant, and prints the notes about an answer at it.
func Find(ctx context.Context, e *env.Env, rec *env.Record, at history.Instant) (*Place, error) {
	namespace, err := namespaceOf(ctx, e, rec)
	if err != nil {
		return nil, err
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return nil, err
	}
	e.Notes(point.Notes)
	e.Note(Inexact("clients see", point))
	return &Place{Context: contextName(rec.Cluster(), at, point), root: apiserver.Path(rec.Cluster().UID, point.Seq), namespace: namespace}, nil
}

// namespaceOf returns the default namespace of the clients.
func namespaceOf(ctx context.Context, e *env.Env, rec *env.Record) (string, error) {
	namespace, err := e.Namespace(false)
	if err != nil {
		// The namespace is only a default of the client, so an error is only a note.
		e.Note("the new kubeconfig has no namespace, because your own kubeconfig cannot be read: " + err.Error())
	}
	return namespace, e.NoteNamespace(ctx, rec, namespace)
}

// Inexact returns a note if the seq of a point lacks changes, or has later ones; "" if not. The note begins with who, such
// as "clients see".
func Inexact(who string, p history.Point) string {
	switch {
	case p.Until > p.Seq:
		return fmt.Sprintf("%s seq:%d, the last delta before a pause: the answer lacks changes during the pause; replay get shows them", who, p.Seq)
	case p.RV != "":
		return fmt.Sprintf("%s seq:%d, at which every resource has reached resource version %s: some may be a few versions later", who, p.Seq, p.RV)
	}
	return ""
}

// contextName returns a name with the cluster and the instant, such as shop@2026-01-31T03:12:00Z_seq:1234.
func contextName(c history.Cluster, at history.Instant, p history.Point) string {
	seq := fmt.Sprintf("seq:%d", p.Seq)
	switch {
	case at == history.AtSeq(p.Seq):
		return c.Name + "@" + seq
	case at.RV() != "":
		return fmt.Sprintf("%s@rv:%s_%s", c.Name, at.RV(), seq)
	}
	return fmt.Sprintf("%s@%s_%s", c.Name, p.Time.UTC().Format(time.RFC3339), seq)
}

// Kubeconfig returns a kubeconfig with only this place.
func (p *Place) Kubeconfig(access serve.Access) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = p.Context
	config.Clusters[p.Context] = &clientcmdapi.Cluster{Server: access.URL + p.root, CertificateAuthorityData: access.CA}
	config.AuthInfos[p.Context] = &clientcmdapi.AuthInfo{Token: access.Token}
	config.Contexts[p.Context] = &clientcmdapi.Context{Cluster: p.Context, AuthInfo: p.Context, Namespace: p.namespace}
	return clientcmd.Write(*config)
}
