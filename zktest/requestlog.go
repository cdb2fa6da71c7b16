package zktest

// requestLog keeps the last requests, in pieces: keeping one more never moves those that are there.
type requestLog struct {
	pieces []*logPiece // oldest first; all but the last are full
	n      int
	added  int // since the server was made
	text   int // bytes of their paths
}

type logPiece struct {
	requests []Request
	text     int
}

// A log is shortened by a piece when it has more than enough of either.
const (
	maxLog       = 100_000
	maxLogText   = 64 << 20
	maxPiece     = 1000
	maxPieceText = 1 << 20
)

func (l *requestLog) add(r Request) {
	p := l.last()
	l.added++
	r.Number = l.added
	p.requests = append(p.requests, r)
	text := r.text()
	p.text += text
	l.text += text
	l.n++
	for len(l.pieces) > 1 && (l.n-len(l.pieces[0].requests) >= maxLog || l.text > maxLogText) {
		l.n -= len(l.pieces[0].requests)
		l.text -= l.pieces[0].text
		l.pieces[0] = nil
		l.pieces = l.pieces[1:]
	}
}

// last returns a piece with room.
func (l *requestLog) last() *logPiece {
	k := len(l.pieces)
	if k > 0 && len(l.pieces[k-1].requests) < maxPiece && l.pieces[k-1].text < maxPieceText {
		return l.pieces[k-1]
	}
	p := &logPiece{}
	if k > 0 { // most servers see few requests
		p.requests = make([]Request, 0, maxPiece)
	}
	l.pieces = append(l.pieces, p)
	return p
}

// text returns how many bytes of paths a request keeps.
func (r *Request) text() int {
	sum := 0
	for _, p := range r.Paths {
		sum += 16 + len(p)
	}
	return sum
}

func (l *requestLog) all() []Request {
	out := make([]Request, 0, l.n)
	for _, p := range l.pieces {
		out = append(out, p.requests...)
	}
	return out
}

// newest yields the requests, the last one first.
func (l *requestLog) newest(yield func(*Request) bool) {
	for i := len(l.pieces) - 1; i >= 0; i-- {
		of := l.pieces[i].requests
		for j := len(of) - 1; j >= 0; j-- {
			if !yield(&of[j]) {
				return
			}
		}
	}
}
