package table

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Saw makes the table believe that the bucket of a key has this version.
func (t *Table) Saw(e *zkconn.Epoch, key string, version int32) {
	p := t.place(context.Background(), e, Key{Text: key})
	t.saw(e, p.life, p.bucket, version)
}
