package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
)

// WorkloadOptions say what is started to bring workloads to life.
type WorkloadOptions struct {
	// Nodes is how many Nodes are made, each with room for 110 Pods.
	Nodes int
	// Stages are Stage documents for kwok besides those of the programs. One with a weight wins over those, which have none.
	Stages string
}

// Workloads are the programs that turn a Deployment into Pods that run, on Nodes that kwok plays. They act on the first
// API server as its administrator.
type Workloads struct {
	ControllerManager *Component
	Scheduler         *Component
	Kwok              *Component
}

// StartWorkloads starts the controller manager, the scheduler and kwok, makes Nodes, and returns when all of them are
// Ready. It needs the programs of `make control-plane-full`. Stop ends them with the rest.
func (p *ControlPlane) StartWorkloads(ctx context.Context, options WorkloadOptions) (*Workloads, error) {
	programs, err := binaries.Find(binaries.Full...)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		return nil, err
	}
	kwokArgs, err := p.kwokArguments(programs, kubeconfig, options.Stages)
	if err != nil {
		return nil, err
	}
	workloads := &Workloads{
		ControllerManager: p.controllerManager(programs, kubeconfig),
		Scheduler:         p.controller(programs, binaries.Scheduler, securePort, fast(kubeconfig)),
		Kwok:              p.controller(programs, binaries.Kwok, kwokPort, kwokArgs),
	}
	components := []*Component{workloads.ControllerManager, workloads.Scheduler, workloads.Kwok}
	if err := p.own(components...); err != nil {
		return nil, err
	}
	for _, component := range components {
		if err := component.Start(ctx); err != nil {
			return nil, err
		}
	}
	return workloads, p.makeNodes(ctx, options.Nodes)
}

// StartControllerManager starts the controller manager alone: there are ReplicaSets and Pods of Deployments, and nothing runs.
func (p *ControlPlane) StartControllerManager(ctx context.Context) (*Component, error) {
	programs, err := binaries.Find(binaries.ControllerManager)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		return nil, err
	}
	manager := p.controllerManager(programs, kubeconfig)
	if err := p.own(manager); err != nil {
		return nil, err
	}
	return manager, manager.Start(ctx)
}

func (p *ControlPlane) controllerManager(programs, kubeconfig string) *Component {
	return p.controller(programs, binaries.ControllerManager, securePort, append(fast(kubeconfig),
		"--controllers=*,-bootstrapsigner,-tokencleaner",
		"--service-account-private-key-file="+p.certificates.serviceAccountsKey,
		"--root-ca-file="+p.certificates.authority,
	))
}

// fast are the arguments of controllers that need not wait.
func fast(kubeconfig string) []string {
	return []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--kube-api-qps=2000", "--kube-api-burst=4000"}
}

func (p *ControlPlane) kwokArguments(programs, kubeconfig, stages string) ([]string, error) {
	arguments := []string{
		"--kubeconfig=" + kubeconfig, "--manage-all-nodes=true", "--node-lease-duration-seconds=40",
		"--config=" + filepath.Join(programs, binaries.KwokStages),
	}
	if stages == "" {
		return arguments, nil
	}
	path := filepath.Join(p.home.dir, "stages.yaml")
	return append(arguments, "--config="+path), os.WriteFile(path, []byte(stages), 0o600)
}

// portFlags are a program's flags for its port, and its path for health checks.
type portFlags struct {
	flags  func(port int) []string
	health func(port int) string
}

var securePort = portFlags{
	flags: func(port int) []string {
		return []string{"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port)}
	},
	health: func(port int) string { return "https://" + address(port) + "/healthz" },
}

var kwokPort = portFlags{
	flags:  func(port int) []string { return []string{"--server-address=" + address(port)} },
	health: func(port int) string { return "http://" + address(port) + "/healthz" },
}

// controller prepares one client of the API server.
func (p *ControlPlane) controller(programs, name string, ports portFlags, args []string) *Component {
	var port atomic.Int64
	// The certificates are made by the programs themselves; nothing secret is asked.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return &Component{
		name: name, dir: p.home.dir, path: filepath.Join(programs, name),
		arguments: func(ctx context.Context) ([]string, error) {
			free, err := freePort(ctx)
			port.Store(int64(free))
			return append(ports.flags(free), args...), err
		},
		ready: func(ctx context.Context) error { return ask(ctx, client, ports.health(int(port.Load())), "") },
	}
}

// makeNodes makes the Nodes that are not there yet and waits until all are Ready.
func (p *ControlPlane) makeNodes(ctx context.Context, count int) error {
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return err
	}
	for i := range count {
		if _, err := client.CoreV1().Nodes().Create(ctx, fakeNode(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making a Node: %w", err)
		}
	}
	return waitForNodes(ctx, client, count)
}

func fakeNode(number int) *corev1.Node {
	name := fmt.Sprintf("node-%03d", number)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "type": "kwok",
		}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

func waitForNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	ticker := time.NewTicker(4 * readyPoll)
	defer ticker.Stop()
	for {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := countReady(nodes.Items)
		if ready >= count {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d Nodes are Ready: %w", ready, count, context.Cause(ctx))
		}
	}
}

// countReady counts the Nodes on which Pods can be placed: Ready, and without the taint that a new Node gets.
func countReady(nodes []corev1.Node) int {
	count := 0
	for _, node := range nodes {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				count++
			}
		}
	}
	return count
}
