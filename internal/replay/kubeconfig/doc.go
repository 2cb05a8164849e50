// Package kubeconfig is the command kubeconfig. It writes a kubeconfig that leads to a running server, at an instant.
package kubeconfig
