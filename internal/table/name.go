package table

import (
	"strconv"
	"strings"
)

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
