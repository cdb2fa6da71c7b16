// Package zkotel reports locks to OpenTelemetry: a span for each wait and for each hold, links from a waiter to
// the holder that it waited for, and histograms.
//
// [New] returns a tracer for zksync.WithTracer. An acquisition is a span "acquire NAME", a child of the span in
// the caller's context; the hold is a span "hold NAME", a child of the acquisition, and spans that begin with the
// lease's context are children of the hold. NAME is that of zksync.WithName at the object, else the first
// pattern of [WithPaths] that matches, else the kind; never a path, so there are few names.
//
// docs/traces.md has all attributes and metrics.
package zkotel
