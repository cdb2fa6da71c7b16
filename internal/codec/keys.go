package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Keys turn the keys of users into text, and back. The rules are those of encoding/json for the keys of maps: a string is its own
// text, an encoding.TextMarshaler is asked, and an integer is written in decimal.
type Keys[K comparable] struct {
	Encode func(k K) (string, error)
	Decode func(text string) (K, error)
}

// KeysOf returns the rules for K, or an error if K cannot be a key.
func KeysOf[K comparable]() (Keys[K], error) {
	t := reflect.TypeFor[K]()
	_, marshals := any((*K)(nil)).(encoding.TextMarshaler)
	_, unmarshals := any((*K)(nil)).(encoding.TextUnmarshaler)
	switch {
	case t.Kind() == reflect.String:
		return stringKeys[K](), nil
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && marshals && unmarshals:
		return textKeys[K](), nil
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return checked(Keys[K]{
			Encode: func(k K) (string, error) { return strconv.FormatInt(reflect.ValueOf(k).Int(), 10), nil },
			Decode: parsed[K](func(text string, to reflect.Value) error {
				n, err := strconv.ParseInt(text, 10, t.Bits())
				to.SetInt(n)
				return err
			}),
		}), nil
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		return checked(Keys[K]{
			Encode: func(k K) (string, error) { return strconv.FormatUint(reflect.ValueOf(k).Uint(), 10), nil },
			Decode: parsed[K](func(text string, to reflect.Value) error {
				n, err := strconv.ParseUint(text, 10, t.Bits())
				to.SetUint(n)
				return err
			}),
		}), nil
	}
	return Keys[K]{}, errs.Misuse("keys of type %s; a key is a string, an integer, or an encoding.TextMarshaler and TextUnmarshaler that is no pointer", t)
}

func stringKeys[K comparable]() Keys[K] {
	return Keys[K]{
		Encode: func(k K) (string, error) { return reflect.ValueOf(k).String(), nil },
		Decode: parsed[K](func(text string, to reflect.Value) error { to.SetString(text); return nil }),
	}
}

func textKeys[K comparable]() Keys[K] {
	return checked(Keys[K]{
		Encode: func(k K) (string, error) {
			text, err := any(&k).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return "", errs.Misuse("the key cannot be encoded: %w", err)
			}
			return string(text), nil
		},
		Decode: func(text string) (k K, err error) {
			err = any(&k).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
			return k, err
		},
	})
}

// parsed makes a decoder of a function that sets a value.
func parsed[K comparable](set func(text string, to reflect.Value) error) func(string) (K, error) {
	return func(text string) (k K, err error) {
		err = set(text, reflect.ValueOf(&k).Elem())
		return k, err
	}
}

// checked refuses text that is not how a key is written: "07" for 7. Two nodes must not be one key.
func checked[K comparable](of Keys[K]) Keys[K] {
	return Keys[K]{Encode: of.Encode, Decode: func(text string) (K, error) {
		k, err := of.Decode(text)
		if err != nil {
			return k, err
		}
		if again, err := of.Encode(k); err != nil || again != text {
			return k, fmt.Errorf("the key %s is written %s", errs.Quote(text), errs.Quote(again))
		}
		return k, nil
	}}
}
