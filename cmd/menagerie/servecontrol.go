package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	faults "github.com/go-menagerie/menagerie/cmd/menagerie/internal/control"
	"github.com/go-menagerie/menagerie/zktest"
)

// listenForControl opens the port of --control; nil without that flag.
func listenForControl(f serveFlags) (*net.TCPListener, error) {
	if f.control == "" {
		if f.manual {
			return nil, usage("--manual-clock needs --control: without POST /advance no session would ever expire")
		}
		return nil, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", f.control)
	if err != nil {
		return nil, listenError("control", f.control, err)
	}
	if !addr.IP.IsLoopback() {
		return nil, usage("cannot listen on %q for --control: whoever reaches that port controls the server, so it is for this machine only; "+
			"want a loopback address such as 127.0.0.1:0", f.control)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, listenError("control", f.control, err)
	}
	return l, nil
}

// control answers what comes to l, if there is one, until the context ends.
func (a *app) control(ctx context.Context, srv *zktest.Server, l *net.TCPListener, f serveFlags) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	answers := &http.Server{Handler: faults.New(srv, f.manual, slog.New(a.teller())), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = answers.Close() })
	defer stop()
	if err := answers.Serve(l); ctx.Err() == nil {
		return failure("control on %s: %v", l.Addr(), err)
	}
	return nil
}
