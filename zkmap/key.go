package zkmap

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/zksync"
)

// keys turns keys into text, and back. The rules are those of encoding/json for the keys of maps: a string is its own
// text, an encoding.TextMarshaler is asked, and an integer is written in decimal.
type keys[K comparable] struct {
	encode func(k K) (string, error)
	decode func(text string) (K, error)
}

// keysOf returns the rules for K, or an error if K cannot be a key.
func keysOf[K comparable]() (keys[K], error) {
	t := reflect.TypeFor[K]()
	_, marshals := any((*K)(nil)).(encoding.TextMarshaler)
	_, unmarshals := any((*K)(nil)).(encoding.TextUnmarshaler)
	switch {
	case t.Kind() == reflect.String:
		return stringKeys[K](), nil
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && marshals && unmarshals:
		return textKeys[K](), nil
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return checked(keys[K]{
			encode: func(k K) (string, error) { return strconv.FormatInt(reflect.ValueOf(k).Int(), 10), nil },
			decode: parsed[K](func(text string, to reflect.Value) error {
				n, err := strconv.ParseInt(text, 10, t.Bits())
				to.SetInt(n)
				return err
			}),
		}), nil
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		return checked(keys[K]{
			encode: func(k K) (string, error) { return strconv.FormatUint(reflect.ValueOf(k).Uint(), 10), nil },
			decode: parsed[K](func(text string, to reflect.Value) error {
				n, err := strconv.ParseUint(text, 10, t.Bits())
				to.SetUint(n)
				return err
			}),
		}), nil
	}
	return keys[K]{}, fmt.Errorf("%w: keys of type %s; a key is a string, an integer, or an encoding.TextMarshaler and TextUnmarshaler that is no pointer",
		zksync.ErrMisuse, t)
}

func stringKeys[K comparable]() keys[K] {
	return keys[K]{
		encode: func(k K) (string, error) { return reflect.ValueOf(k).String(), nil },
		decode: parsed[K](func(text string, to reflect.Value) error { to.SetString(text); return nil }),
	}
}

func textKeys[K comparable]() keys[K] {
	return checked(keys[K]{
		encode: func(k K) (string, error) {
			text, err := any(&k).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return "", fmt.Errorf("%w: the key cannot be encoded: %w", zksync.ErrMisuse, err)
			}
			return string(text), nil
		},
		decode: func(text string) (k K, err error) {
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
func checked[K comparable](of keys[K]) keys[K] {
	return keys[K]{encode: of.encode, decode: func(text string) (K, error) {
		k, err := of.decode(text)
		if err != nil {
			return k, err
		}
		if again, err := of.encode(k); err != nil || again != text {
			return k, fmt.Errorf("the key %s is written %s", errs.Quote(text), errs.Quote(again))
		}
		return k, nil
	}}
}

// maxName bounds the name of a key's node. The servers would take more, but all names of a bucket must fit into one
// answer.
const maxName = 64 << 10

// emptyName is the name of the node of the empty key. No other key has it: "%" as a key is "%25".
const emptyName = "%"

// nameOf is the name of a key's node. All bytes but letters, digits, "-", ".", "_" and "~" are escaped, as
// in RFC 3986: "%" and two upper-case hexadecimal digits. The servers do not take "", "." and ".." as names.
func nameOf(key string) string {
	switch key {
	case "":
		return emptyName
	case ".", "..":
		return strings.Repeat("%2E", len(key))
	}
	plain := 0
	for plain < len(key) && unreserved(key[plain]) {
		plain++
	}
	if plain == len(key) {
		return key
	}
	const hex = "0123456789ABCDEF"
	name := make([]byte, plain, len(key)+2*(len(key)-plain))
	copy(name, key)
	for _, b := range []byte(key[plain:]) {
		if unreserved(b) {
			name = append(name, b)
		} else {
			name = append(name, '%', hex[b>>4], hex[b&15])
		}
	}
	return string(name)
}

func unreserved(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '.' || b == '_' || b == '~'
}

// keyOf is the key whose node has this name. ok is false if it is not the name of a key.
func keyOf(name string) (key string, ok bool) {
	if name == emptyName {
		return "", true
	}
	if !strings.Contains(name, "%") {
		return name, nameOf(name) == name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b = append(b, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		n, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(n))
		i += 2
	}
	key = string(b)
	return key, nameOf(key) == name // two names must not be one key
}

// numberOf is the number of a key's bucket: the 32-bit FNV-1a hash of its bytes, modulo the number of buckets.
func numberOf(key string, buckets uint32) uint32 {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * prime
	}
	return h % buckets
}
