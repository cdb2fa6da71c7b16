package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	ui "github.com/go-menagerie/menagerie/cmd/menagerie/internal/page"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/removal"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// uiOptions is the command line of ui.
type uiOptions struct {
	path, listen, token string
	allowRelease        bool
}

func (a *app) uiCommand() *cobra.Command {
	o := uiOptions{path: "/", listen: "127.0.0.1:0"}
	cmd := &cobra.Command{
		Use:   "ui [PATH] [--listen HOST:PORT] [--allow-release] [--token TOKEN]",
		Short: "Show in a browser who holds, who waits, and what is wrong",
		Long: `Serves a page with everything below PATH, live: the servers and what is wrong with them, holders and
how long they hold beside what is usual, waiters, the graph of waits with deadlocks in red, and
holders that are probably dead. Without PATH it shows the root (of the chroot).

It prints the address of the page. The page loads nothing from elsewhere. It is read-only unless --allow-release
is given; then it has a button that removes an entry. While the servers do not answer it says how
old the view is, and removes nothing.

Only this machine reaches the page. Another --listen needs --token: the address that is printed then
ends with the token, which a browser needs once. The connection is not encrypted.

It ends with Ctrl-C, SIGTERM or SIGHUP, exit code 0. Exit codes:
    0  ended by a signal
    1  servers unreachable for --connect-timeout, the port is in use, or another failure
    2  wrong command line`,
		Example: `  menagerie ui
  menagerie ui /locks --listen 127.0.0.1:8080   # always the same port
  menagerie ui --allow-release                  # with buttons that remove an entry
  menagerie ui --listen 0.0.0.0:8080 --token "$(openssl rand -hex 16)"   # for other machines`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.path, err = rootOf(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("token") && o.token == "" {
				return usage("--token is empty: give a text that cannot be guessed")
			}
			return a.ui(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", o.listen, "serve the page on `HOST:PORT`; port 0 picks a free one")
	flags.BoolVar(&o.allowRelease, "allow-release", false, "let viewers remove an entry")
	flags.StringVar(&o.token, "token", "", "viewers need this `TOKEN`; the list of processes shows it to this machine's users")
	return cmd
}

func (a *app) ui(ctx context.Context, o uiOptions) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return listenError("listen", o.listen, err)
	}
	defer l.Close()
	at := l.Addr().(*net.TCPAddr)
	if !at.IP.IsLoopback() && o.token == "" {
		return usage("other machines can reach --listen %s: give --token TOKEN, too, or listen on 127.0.0.1", o.listen)
	}
	s, err := a.connect(ctx, a.connectTimeout.value())
	if err != nil {
		return a.ended(ctx, err)
	}
	defer goodbye(s)
	options := ui.Options{Listen: at, Token: o.token, Command: "menagerie release"}
	if a.servers != "" {
		options.Command = tree.Command("menagerie", "release", "--servers", a.servers)
	}
	if o.allowRelease {
		options.Release = a.releaseShown(s)
	}
	return a.ended(ctx, a.serveUI(ctx, l, ui.New(options), s, o))
}

// serveUI serves the page until ctx ends.
func (a *app) serveUI(ctx context.Context, l net.Listener, p *ui.Page, s *zksync.Session, o uiOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // it would name what viewers ask for
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		cancel(failure("serve on %s: %v", l.Addr(), server.Serve(l)))
	}()
	defer func() {
		_ = server.Close()
		<-served
	}()
	if _, err := fmt.Fprintf(a.stdout, "the page is at %s\n", address(l.Addr().(*net.TCPAddr), o.token)); err != nil {
		return outputError(err)
	}
	return a.survey(s, o.path).Live(ctx, p.Show)
}

// address is where a browser on this machine finds the page.
func address(at *net.TCPAddr, token string) string {
	u := url.URL{Scheme: "http", Host: at.String(), Path: "/"}
	if at.IP.IsUnspecified() {
		u.Host = fmt.Sprintf("127.0.0.1:%d", at.Port)
	}
	if token != "" {
		u.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return u.String()
}

// ended is the error of a command that is to be ended by a signal.
func (a *app) ended(ctx context.Context, err error) error {
	var coded *exitError
	_, signalled := interrupted(ctx)
	switch {
	case err == nil || signalled:
		return nil
	case errors.As(err, &coded):
		return err
	}
	return a.sessionError(err)
}

// releaseShown removes an entry that the page shows.
func (a *app) releaseShown(s *zksync.Session) func(context.Context, ui.Order) (bool, error) {
	return func(ctx context.Context, o ui.Order) (told bool, err error) {
		told, err = removal.Remove(ctx, s, removal.Seen{Path: o.Path, Node: o.Node, Token: o.Token, State: o.State}, o.Reason)
		var refused *removal.Refusal
		if errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", ui.ErrRefused, refused)
		}
		return told, err
	}
}
