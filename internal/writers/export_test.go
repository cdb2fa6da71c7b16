package writers

import "github.com/go-menagerie/menagerie/internal/zkconn"

// Wear puts an idle writer back whose last change gave its node this version.
func (ws *Writers) Wear(e *zkconn.Epoch, dir string, version int32) {
	w := ws.take(e, dir, nil)
	w.version = version
	ws.put(w)
}
