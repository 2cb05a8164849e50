// Package kube is how the recorder speaks to an API server: kubeconfig, connection, discovery, and lists and watches that keep
// each object's bytes. It also says which resources can be recorded.
//
// # What it guarantees
//
//   - An [Object] is what the server sent: its bytes are kept verbatim, and only its metadata is decoded, once. Items of a
//     list come without apiVersion and kind. Both are added, so that a list and a watch give the same object.
//   - A [ListWatch] is a cache.ListerWatcher and a cache.ListerWatcherWithContext. Authentication, TLS, throttling,
//     Retry-After and HTTP/2 health checks are client-go's.
//   - One item of a list that cannot be decoded does not fail the list: it stands in [List.Undecodable]. In a watch it ends
//     the stream with an ERROR event that carries the cause [CauseUndecodable], so that no position passes it (I3).
//   - A group whose discovery failed is not a removed resource. A resource is called removed only when two discoveries in a
//     row agree, or when its CustomResourceDefinition was deleted.
//   - [Follower] announces a new CustomResourceDefinition's resource when it is Established, with a resource version at which
//     it had no objects yet.
//   - Discovery can be ahead of the watches of definitions and APIServices, or behind them. An aggregator may have no
//     APIService for a new resource. If the server has no definition of it either, the follower announces it when two
//     discoveries in a row offer it.
//
// # What it rejects, and why
//
//   - Answers that are neither called JSON nor look like it ([NotJSONError]). A login page or a proxy's apology answered with
//     200 must not be read as an empty cluster.
//   - A watch frame or list item above [Options].MaxFrameBytes ([FrameTooLargeError]): the memory of one stream is bounded.
//   - A page of a list that takes more than [Options].MaxPageBytes in memory ([PageTooLargeError]). A server may ignore the
//     requested limit. If the objects are large, [ListWatch.Page] asks for fewer.
//   - More than 64 MiB of any other answer ([AnswerTooLargeError]): client-go holds those whole. Discovery then asks group by
//     group, so that only the group that says too much fails.
//   - Names in discovery that no Kubernetes API can have ([Discovery].Misnamed). The log warns of them once, and every other
//     resource is taken.
//   - A list that a server continues for ever: with a token that it gave before, or beyond 100,000 pages.
//   - Streaming lists (sendInitialEvents): they fold changes that happen while the list is sent.
//     [ListWatch.IsWatchListSemanticsUnSupported] says so to client-go.
//   - CBOR and protobuf: the record is JSON.
//
// # Goroutines
//
// A watch has one goroutine, which ends with the stream, with its context or at Stop; Stop waits for it. [Follower.Run] owns
// every goroutine of the follower and returns when all of them are done. The connections of client-go's transport run in the
// background until [Client.Close] closes them.
//
// # Knobs
//
//	Options.UserAgent       kuberewind/<version>
//	Options.QPS, Burst      200 and 400 requests, unless rest.Config says otherwise
//	Options.MaxFrameBytes   64 MiB
//	Options.MaxPageBytes    256 MiB; the recorder sets its queue's size
//	FollowerOptions.Rediscover           10 minutes, up to a tenth more
//	FollowerOptions.RediscoverDegraded   1 minute, when definitions cannot be listed
package kube
