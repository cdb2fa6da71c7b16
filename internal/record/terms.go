package record

import (
	"bytes"
	"encoding/json"
)

// DecodeTerms reads the data of a base node, and reports whether it is what it should be: a JSON
// object with all of these keys, and without any that nobody here knows. What is strange may
// belong to something else, which must be left alone; or to a later version of this package, by
// whose rules we do not play.
func DecodeTerms(data []byte, terms any, keys ...string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return false
	}
	for _, k := range keys {
		if _, there := object[k]; !there {
			return false
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(terms) == nil
}
