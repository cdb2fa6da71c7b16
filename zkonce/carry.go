package zkonce

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/zksync"
)

// pack encodes v as JSON. If T is the type error, the text of the error is encoded, because hardly
// any error survives JSON.
func pack[T any](v T) ([]byte, error) {
	if err, ok := any(&v).(*error); ok && *err != nil {
		return json.Marshal((*err).Error())
	}
	return json.Marshal(v)
}

// unpack decodes a value that any process has packed.
func unpack[T any](data []byte) (v T, err error) {
	failure, ok := any(&v).(*error)
	if !ok {
		return v, json.Unmarshal(data, &v)
	}
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return v, err
	}
	*failure = errors.New(*text)
	return v, nil
}

type both[T1, T2 any] struct {
	first  T1
	second T2
}

// pair is the JSON of a both.
type pair struct{ First, Second json.RawMessage }

func packBoth[T1, T2 any](b both[T1, T2]) ([]byte, error) {
	first, err1 := pack(b.first)
	second, err2 := pack(b.second)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	return json.Marshal(pair{first, second})
}

func unpackBoth[T1, T2 any](data []byte) (b both[T1, T2], err error) {
	var p pair
	if err := json.Unmarshal(data, &p); err != nil {
		return b, err
	}
	var err1, err2 error
	b.first, err1 = unpack[T1](p.First)
	b.second, err2 = unpack[T2](p.Second)
	return b, cmp.Or(err1, err2)
}

var (
	errorType = reflect.TypeFor[error]()
	encoders  = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}
)

// unfit is an error if JSON carries no value of type t, or nothing of any: f would run in vain.
func unfit(t reflect.Type) error {
	if bad := uncarried(t, 8); bad != nil && t != errorType {
		return fmt.Errorf("%w: a result of type %v cannot be kept as JSON, because of %v", zksync.ErrMisuse, t, bad)
	}
	return nil
}

// uncarried finds a type in t that JSON does not carry; nil if there is none. What a value may do without is looked at only
// if it is all that t has, up to the given depth of pointers and elements: a field may be nil.
func uncarried(t reflect.Type, depth int) reflect.Type {
	if slices.ContainsFunc(encoders, func(e reflect.Type) bool { return t.Implements(e) || reflect.PointerTo(t).Implements(e) }) {
		return nil
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return t
	case reflect.Interface:
		if depth > 0 && t.NumMethod() > 0 {
			return t // nothing can be decoded into it
		}
	case reflect.Map:
		if !isKey(t.Key()) {
			return t
		}
	case reflect.Struct:
		return uncarriedField(t, depth)
	case reflect.Array:
		return uncarried(t.Elem(), depth)
	}
	if k := t.Kind(); depth > 0 && (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map) {
		return uncarried(t.Elem(), depth-1)
	}
	return nil
}

// uncarriedField is uncarried for a struct. It is t itself if no field of t is carried.
func uncarriedField(t reflect.Type, depth int) reflect.Type {
	none := depth > 0 && t.NumField() > 0
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		if !f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct || tag == "-" {
			continue
		}
		none = false
		if strings.Contains(tag, ",omitzero") {
			continue
		}
		if bad := uncarried(f.Type, 0); bad != nil {
			return bad
		}
	}
	if none {
		return t
	}
	return nil
}

// isKey reports whether JSON has maps with keys of type t.
func isKey(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.String || k >= reflect.Int && k <= reflect.Uintptr || t.Implements(encoders[1])
}
