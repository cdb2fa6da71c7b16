package table

import "github.com/go-menagerie/menagerie/internal/zkconn"

// Saw makes the table believe that the bucket of a key has this version.
func (t *Table) Saw(e *zkconn.Epoch, key string, version int32) {
	t.saw(e, t.bucket(key), sight{version: version})
}
