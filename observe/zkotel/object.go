package zkotel

import (
	"github.com/go-menagerie/menagerie/zksync"
	"go.opentelemetry.io/otel/attribute"
)

// object is what a span is about.
type object struct {
	path, name string // name may be empty
	kind       zksync.Kind
}

func (t *tracer) object(path, name string, kind zksync.Kind) object {
	return object{text(path), t.named(name, path), kind}
}

// title is the name of a span. Names must be few, so it never has the path.
func (o object) title(what string) string {
	if o.name == "" {
		return what + " " + string(o.kind)
	}
	return what + " " + o.name
}

// labels are the attributes of metrics. They must have few values.
func (o object) labels(more ...attribute.KeyValue) attribute.Set {
	all := append(more, attribute.String("lock.kind", string(o.kind)))
	if o.name != "" {
		all = append(all, attribute.String("lock.name", o.name))
	}
	return attribute.NewSet(all...)
}

// attributes are those of spans.
func (o object) attributes(more ...attribute.KeyValue) []attribute.KeyValue {
	labels := o.labels(more...)
	return append(labels.ToSlice(), attribute.String("lock.path", o.path))
}

// grantOf are the attributes of a grant.
func grantOf(token zksync.Token, node string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("lock.token", token.String())}
	if node != "" {
		all = append(all, attribute.String("lock.node", text(node)))
	}
	return all
}
