// Package kube talks to an API server: kubeconfig, connection, discovery, and lists and watches that keep each object's
// bytes. It also finds the resources that can be recorded.
//
// # What it guarantees
//
//   - An [Object] keeps the server's bytes verbatim. The package decodes only the metadata, once. The API server sends list
//     items without apiVersion and kind. The package adds both, so that a list and a watch return the same object.
//   - A [ListWatch] is a cache.ListerWatcher and a cache.ListerWatcherWithContext. client-go does authentication, TLS,
//     throttling, Retry-After and HTTP/2 health checks.
//   - If one item of a list cannot be decoded, the list does not fail: [List.Undecodable] has the error. In a watch, such an
//     object ends the stream with an ERROR event of cause [CauseUndecodable], so that no position passes it (I3).
//   - If discovery of a group fails, its resources are not removed. [Follower] reports a resource as removed only if two
//     discoveries in a row miss it, or if its CustomResourceDefinition was deleted or no longer serves a version.
//   - [Follower] announces a new CustomResourceDefinition's resource when it is Established, with a resource version at which
//     it had no objects yet.
//   - Discovery may offer a resource that has neither a definition nor an APIService. The follower announces it if two
//     discoveries in a row offer it, the server serves it, and the server has no definition of it.
//
// # What it rejects, and why
//
//   - Successful answers that neither have a JSON content type nor begin like JSON ([NotJSONError]). A login page or a
//     proxy's error page with status 200 must not be read as an empty cluster.
//   - A watch frame or list item above [Options].MaxFrameBytes ([FrameTooLargeError]): the memory of one stream is bounded.
//   - A page of a list that takes more than [Options].MaxPageBytes in memory ([PageTooLargeError]). A server may ignore the
//     requested limit. If the objects are large, [ListWatch.Page] requests fewer.
//   - More than 64 MiB of any other answer ([AnswerTooLargeError]): client-go holds such an answer whole in memory. Discovery
//     then requests each group separately, so that only the group with the large answer fails.
//   - Names in discovery that no Kubernetes API can have ([Discovery].Misnamed). The follower warns of them once and follows
//     every other resource.
//   - A list that never ends: the server repeats a continue token, or sends more than 100,000 pages.
//   - Streaming lists (sendInitialEvents): they merge changes that happen while the server sends the list. Therefore
//     [ListWatch.IsWatchListSemanticsUnSupported] returns true.
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
//	FollowerOptions.RediscoverDegraded   1 minute, when definitions or APIServices cannot be followed
package kube
