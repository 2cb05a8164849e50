package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/replay/env"
)

// Shared is a server that others run, at another address. It accepts the credentials that its clients have for the live
// cluster.
type Shared struct {
	own               bool
	server, authority string
}

// AddFlags adds --own-credentials, --server and --certificate-authority.
func (s *Shared) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&s.own, "own-credentials", false, "for a server that others run: use the credentials of your current context; needs --server")
	flags.StringVar(&s.server, "server", "", "URL of a cluster on that server, https://HOST:PORT/clusters/UID, as \"serve\" prints it")
	flags.StringVar(&s.authority, "certificate-authority", "", "PEM file of the CA of that server (default: the CAs of this machine)")
}

// serverForm matches the URL of a cluster.
var serverForm = regexp.MustCompile(`^(https://[^/?#]+)/clusters/([^/?#]+)/?$`)

const clusterPath = "/clusters/"

// Selected reports whether the flags select such a server.
func (s *Shared) Selected() bool { return s.own }

// Check rejects contradictory flags.
func (s *Shared) Check() error {
	switch {
	case !s.own && (s.server != "" || s.authority != ""):
		return errors.New("--server and --certificate-authority are for a server that others run: it needs your own credentials, so add --own-credentials")
	case s.own && !serverForm.MatchString(s.server):
		return fmt.Errorf("--own-credentials needs --server https://HOST:PORT/clusters/UID, as \"serve\" prints it, not %q", s.server)
	}
	return nil
}

// An address is the server of a kubeconfig, and the title of its context.
type address struct {
	server, title string
}

// Kubeconfig returns a kubeconfig with the credentials of the current context. It needs no record, because the server
// resolves the instant.
func (s *Shared) Kubeconfig(ctx context.Context, e *env.Env, aim *Aim) ([]byte, error) {
	own, authority, err := s.credentials(e)
	if err != nil {
		return nil, err
	}
	parts := serverForm.FindStringSubmatch(s.server)
	path, title, found := aim.Elsewhere()
	target := address{server: parts[1] + clusterPath + parts[2] + path, title: title}
	if !found {
		if target, err = find(ctx, own.kubeconfigFor(target, authority), parts[1]); err != nil {
			return nil, err
		}
	}
	target.title = own.context.Cluster + "@" + target.title
	return clientcmd.Write(*own.kubeconfigFor(target, authority))
}

// credentials returns the user of the current context, and the CA of the server.
func (s *Shared) credentials(e *env.Env) (own *userContext, authority []byte, err error) {
	if own, err = currentContext(e); err != nil || s.authority == "" {
		return own, nil, err
	}
	if authority, err = os.ReadFile(s.authority); err != nil {
		return nil, nil, fmt.Errorf("--certificate-authority: %w", err)
	}
	return own, authority, nil
}

// Sessions returns a client for the sessions of the cluster that the flags name.
func (s *Shared) Sessions(e *env.Env) (*Sessions, error) {
	own, authority, err := s.credentials(e)
	if err != nil {
		return nil, err
	}
	parts := serverForm.FindStringSubmatch(s.server)
	config, err := clientcmd.NewDefaultClientConfig(*own.kubeconfigFor(address{server: parts[1], title: parts[1]}, authority), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return newSessions(config, parts[1], parts[2])
}

// A userContext is a context of the user's kubeconfig.
type userContext struct {
	context *clientcmdapi.Context
	user    *clientcmdapi.AuthInfo
}

func currentContext(e *env.Env) (*userContext, error) {
	all, err := e.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read your own kubeconfig: %w", err)
	}
	name := all.CurrentContext
	if named := *e.Config.Context; named != "" {
		name = named
	}
	own := all.Contexts[name]
	if own == nil || all.AuthInfos[own.AuthInfo] == nil {
		return nil, fmt.Errorf("your kubeconfig has no context %q with a user: name one with --context", name)
	}
	own = own.DeepCopy()
	if named := *e.Config.Namespace; named != "" {
		own.Namespace = named
	}
	return &userContext{context: own, user: all.AuthInfos[own.AuthInfo]}, nil
}

// kubeconfigFor returns a kubeconfig with only this address.
func (c *userContext) kubeconfigFor(p address, authority []byte) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = p.title
	config.Clusters[p.title] = &clientcmdapi.Cluster{Server: p.server, CertificateAuthorityData: authority}
	config.AuthInfos[p.title] = c.user
	config.Contexts[p.title] = &clientcmdapi.Context{Cluster: p.title, AuthInfo: p.title, Namespace: c.context.Namespace}
	return config
}

// find resolves an instant at the server: the server answers a time or duration with the path of its seq.
func find(ctx context.Context, config *clientcmdapi.Config, origin string) (address, error) {
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return address{}, err
	}
	transport, err := rest.HTTPClientFor(client)
	if err != nil {
		return address{}, err
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, client.Host, nil)
	if err != nil {
		return address{}, err
	}
	response, err := transport.Do(r)
	if err != nil {
		return address{}, fmt.Errorf("resolve the instant at %s: %w", origin, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return address{}, fmt.Errorf("resolve the instant at %s: %w", origin, err)
	}
	return placeIn(text, origin, response.Status)
}

// placeIn parses the answer of a server.
func placeIn(text []byte, origin, code string) (address, error) {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return address{}, fmt.Errorf("%s answered %s: it is not a server of \"replay serve\"", origin, code)
	}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == apiserver.CauseInstant {
				_, seq, _ := strings.Cut(cause.Message, "/at/")
				return address{server: origin + cause.Message, title: cause.Field + "_" + seq}, nil
			}
		}
	}
	return address{}, fmt.Errorf("%s answered %s: %s", origin, code, status.Message)
}
