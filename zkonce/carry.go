package zkonce

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// carried is a result as JSON. Of an error only the text is kept, because hardly any error survives JSON.
type carried[T any] struct{ v T }

func (c carried[T]) MarshalJSON() ([]byte, error) {
	if err, ok := any(&c.v).(*error); ok && *err != nil {
		return json.Marshal((*err).Error())
	}
	return json.Marshal(c.v)
}

func (c *carried[T]) UnmarshalJSON(data []byte) error {
	failure, ok := any(&c.v).(*error)
	if !ok {
		return json.Unmarshal(data, &c.v)
	}
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return err
	}
	*failure = errors.New(*text)
	return nil
}

// both are the results of OnceValues.
type both[T1, T2 any] struct {
	First  carried[T1]
	Second carried[T2]
}

// pack encodes a result.
func pack(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	for wrapped := new(json.MarshalerError); errors.As(err, &wrapped); {
		err = wrapped.Err // it names only types of this package
	}
	return data, err
}

// unfit is an error if JSON cannot encode a T: f would run in vain. It sees what is in T itself, not behind pointers or in elements.
func unfit[T any]() error {
	bad := new(json.UnsupportedTypeError)
	if _, err := json.Marshal(*new(T)); errors.As(err, &bad) {
		return errs.Misuse("a result of type %v cannot be kept as JSON, because of %v", reflect.TypeFor[T](), bad.Type)
	}
	return nil
}
