package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/delegate"
)

// sharing holds the flags that allow other users to read.
type sharing struct {
	certificate, key string
	mode             string
	live             []string // UID=KUBECONFIG

	configs map[string]*rest.Config // of the live API of each cluster, by UID
}

func (s *sharing) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.certificate, "tls-cert", "", "PEM file of the server's certificate, with its chain; needs --authorization")
	flags.StringVar(&s.key, "tls-key", "", "PEM file of the certificate's key")
	flags.StringVar(&s.mode, "authorization", "", "let the live cluster decide who may read: live-self asks it with the caller's token, live with the server's own identity")
	flags.StringArrayVar(&s.live, "live", nil, "UID=KUBECONFIG: UID of a cluster and a kubeconfig of its live API; once for each cluster")
}

// check rejects contradictory flags.
func (s *sharing) check() error {
	given := s.certificate != "" || s.key != "" || len(s.live) > 0
	switch {
	case s.mode == "" && given:
		return errors.New("--tls-cert, --tls-key and --live need --authorization: add --authorization live-self or live")
	case s.mode == "":
		return nil
	case s.mode != string(delegate.Self) && s.mode != string(delegate.Server):
		return fmt.Errorf("--authorization %q: use %s or %s", s.mode, delegate.Self, delegate.Server)
	case s.certificate == "" || s.key == "":
		return fmt.Errorf("--authorization %s needs --tls-cert and --tls-key: clients on other machines verify this server by its certificate", s.mode)
	case len(s.live) == 0:
		return fmt.Errorf("--authorization %s needs --live UID=KUBECONFIG: the API of the live cluster that decides who may read", s.mode)
	}
	return s.readLive()
}

func (s *sharing) readLive() error {
	s.configs = map[string]*rest.Config{}
	for _, text := range s.live {
		uid, file, ok := strings.Cut(text, "=")
		if !ok || uid == "" || file == "" {
			return fmt.Errorf("--live %q: use UID=KUBECONFIG, the UID of the cluster and a file", text)
		}
		if s.configs[uid] != nil {
			return fmt.Errorf("--live names cluster %s twice: a cluster has one live API", uid)
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return fmt.Errorf("--live %s: %w", text, err)
		}
		s.configs[uid] = config
	}
	return nil
}

// open adds the settings of the flags to the options. Without the flags, it adds nothing.
func (s *sharing) open(records []*history.Record, o *past.Options) error {
	if s.mode == "" {
		return nil
	}
	served := map[string]bool{}
	var uids []string
	for _, record := range records {
		served[record.Cluster().UID] = true
		uids = append(uids, record.Cluster().UID+" ("+record.Cluster().Name+")")
	}
	for uid := range s.configs {
		if !served[uid] {
			return fmt.Errorf("--live %s: this server has no cluster with this UID; it serves %s", uid, strings.Join(uids, ", "))
		}
	}
	certificate, err := tls.LoadX509KeyPair(s.certificate, s.key)
	if err != nil {
		return fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	live, err := delegate.New(delegate.Options{Mode: delegate.Mode(s.mode), Clusters: s.configs})
	if err != nil {
		return err
	}
	o.API.Access.Authorize, o.API.Access.Cluster = live.Authorize, live.Cluster
	o.Front.Shared = &serve.Shared{Certificate: certificate, Authenticator: live, ClientCertificates: live.Certificates()}
	if o.Page != nil {
		o.Page.Live = live
	}
	return nil
}
