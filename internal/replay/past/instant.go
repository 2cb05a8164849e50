package past

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// AtFlag adds --at.
func AtFlag(flags *pflag.FlagSet, at *string) {
	env.InstantVar(flags, at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
}

// An Instant is where clients are led to.
type Instant struct {
	Seq       int64
	Context   string // its name
	namespace string
	cluster   history.Cluster
}

// Find resolves what was typed, and notes what an answer of then is to be taken with.
func Find(ctx context.Context, e *env.Env, rec *env.Record, at history.Instant) (*Instant, error) {
	namespace, err := e.Namespace(false)
	if err != nil {
		// It is a client's default, and no more: one that is named wins.
		e.Note("the kubeconfig names no namespace, as your own cannot be read: " + err.Error())
	}
	if err := e.NoteNamespace(ctx, rec, namespace); err != nil {
		return nil, err
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return nil, err
	}
	e.Notes(point.Notes)
	e.Note(Inexact("clients see", point))
	return &Instant{Seq: point.Seq, Context: contextName(rec.Cluster(), at, point), namespace: namespace, cluster: rec.Cluster()}, nil
}

// Inexact says what the seq of a point leaves out, or has too much; "" if nothing. It begins with who sees it, such as "clients see".
func Inexact(who string, p history.Point) string {
	switch {
	case p.Until > p.Seq:
		return fmt.Sprintf("%s seq:%d, the last delta before a time that was caught up on: what happened in that time up to the instant is not in it; replay get shows it", who, p.Seq)
	case p.RV != "":
		return fmt.Sprintf("%s seq:%d, at which every resource has come to resource version %s: some may be a few versions further", who, p.Seq, p.RV)
	}
	return ""
}

// contextName says of which cluster and when, such as shop@2026-01-31T03:12:00Z_seq:1234.
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

// Kubeconfig leads to the instant, and nowhere else.
func (i *Instant) Kubeconfig(access serve.Access) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = i.Context
	config.Clusters[i.Context] = &clientcmdapi.Cluster{
		Server: access.URL + apiserver.Path(i.cluster.UID, i.Seq), CertificateAuthorityData: access.CA,
	}
	config.AuthInfos[i.Context] = &clientcmdapi.AuthInfo{Token: access.Token}
	config.Contexts[i.Context] = &clientcmdapi.Context{Cluster: i.Context, AuthInfo: i.Context, Namespace: i.namespace}
	return clientcmd.Write(*config)
}
