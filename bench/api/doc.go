// Package api measures the API of the past against the kube-apiserver that was recorded: the same questions about the same Pods, by the same
// client, over TLS on loopback.
//
// # What it guarantees
//
//   - Both servers have the same objects: generated Pods, written to etcd as an API server stores them. A recorder lists them from the real
//     kube-apiserver. Each pair of answers must have the same length, give or take 5 %; else the run ends.
//   - Both are asked by one client, which wants JSON without compression and discards it. HTTP/1.1 and HTTP/2 are measured apart.
//   - Each server is a process of its own, and so is the recorder. The client reaches kube-apiserver without the proxy of
//     internal/controlplane.
//
// # What it cannot show
//
// kube-apiserver collects garbage four times less often than by default, as internal/controlplane starts it. That is in its favour: it takes less
// CPU time, and its heap is measured after a forced collection.
package api
