package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// APIServerOptions say how an API server differs from the usual one.
type APIServerOptions struct {
	// Args are added to the command line, and win over the others: a flag given twice has its last value. Useful ones:
	// --watch-cache=false, --default-watch-cache-size=10, --request-timeout=5s, --min-request-timeout=2 (watches end after that
	// and up to twice that many seconds), --max-requests-inflight=5, --etcd-compaction-interval=5m (off unless given),
	// --storage-media-type=application/json.
	Args []string
	// Audit keeps a log of every request, which Requests reads. It costs the server about two lines for each.
	Audit bool
	// AuditWrites, with Audit, keeps the bodies of writes and of their answers, but not those of Secrets and Leases. Of reads it keeps nothing.
	AuditWrites bool
	// AuditSecrets, with AuditWrites, keeps the bodies of Secrets and Leases, too.
	AuditSecrets bool
	// AuditUsers confines the log to the requests of these users; empty means everybody's.
	AuditUsers []string
}

// APIServer is one kube-apiserver. Clients reach it through a proxy, at an address that stays the same over restarts.
type APIServer struct {
	*Component
	options APIServerOptions
	plane   *ControlPlane
	proxy   *proxy
	server  atomic.Value // string: where the process itself listens; another one after each start
}

func newAPIServer(plane *ControlPlane, name, path string, options APIServerOptions) *APIServer {
	s := &APIServer{options: options, plane: plane, proxy: newProxy()}
	s.Component = &Component{
		name: name, dir: plane.home.dir, path: path,
		arguments: s.arguments, ready: s.ready, onEnd: s.proxy.close,
	}
	return s
}

func (s *APIServer) arguments(ctx context.Context) ([]string, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s.server.Store(address(port))
	certificates := s.plane.certificates
	arguments := []string{
		"--etcd-servers=" + s.plane.Etcd.URL(),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		// A loopback address is refused as the endpoint of the kubernetes Service; nothing here uses it.
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + s.dir,
		"--tls-cert-file=" + certificates.serving,
		"--tls-private-key-file=" + certificates.servingKey,
		"--service-account-key-file=" + certificates.serviceAccountsKey,
		"--service-account-signing-key-file=" + certificates.serviceAccountsKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--token-auth-file=" + s.plane.tokenFile,
		"--authorization-mode=RBAC",
		// Pods can be made before a controller has made their namespace's service account.
		"--disable-admission-plugins=ServiceAccount",
		"--etcd-compaction-interval=0",
		// Asked to end, the server ends open watches; otherwise it would wait for them for a minute.
		"--shutdown-watch-termination-grace-period=500ms",
	}
	audit, err := s.auditArguments()
	return append(append(arguments, audit...), s.options.Args...), err
}

// ready asks the process itself, and lets clients in once it answers, whatever it says. The namespace default it makes on its own, not
// always before it says that it is ready.
func (s *APIServer) ready(ctx context.Context) error {
	server := s.server.Load().(string)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.plane.certificates.authorityPEM)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	err := ask(ctx, client, "https://"+server+"/readyz?verbose", s.plane.users[AdminName].Token)
	if err == nil {
		err = ask(ctx, client, "https://"+server+"/api/v1/namespaces/default", s.plane.users[AdminName].Token)
	}
	var answer *answerError
	if err != nil && !errors.As(err, &answer) {
		return err
	}
	return errors.Join(err, s.proxy.open(ctx, server))
}

// URL returns the address for clients. It stays the same over restarts.
func (s *APIServer) URL() string { return "https://" + s.proxy.clientAddress() }

// ProcessURL returns the address of the process itself, another one after each start. Measuring clients go there: the proxy
// takes CPU time.
func (s *APIServer) ProcessURL() string { return "https://" + s.server.Load().(string) }

// CutConnections ends all connections between clients and the server, as a broken network does, and with them all
// watches. Clients may connect again at once. It returns how many connections there were.
func (s *APIServer) CutConnections() int { return s.proxy.cut() }

// Config returns a client configuration for one of the control plane's users, without a rate limit of the client's own.
func (s *APIServer) Config(user string) (*rest.Config, error) {
	known, err := s.plane.user(user)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            s.URL(),
		BearerToken:     known.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.plane.certificates.authorityPEM},
		QPS:             -1,
	}, nil
}

// Kubeconfig writes a kubeconfig for one of the control plane's users and returns its path. It stays valid over
// restarts, and goes with the control plane's folder.
func (s *APIServer) Kubeconfig(user string) (string, error) {
	known, err := s.plane.user(user)
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[s.name] = &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.plane.certificates.authorityPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: known.Token}
	config.Contexts[s.name] = &clientcmdapi.Context{Cluster: s.name, AuthInfo: user}
	config.CurrentContext = s.name
	path := filepath.Join(s.dir, s.name+"."+user+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
