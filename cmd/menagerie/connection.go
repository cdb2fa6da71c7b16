package main

import (
	"crypto/tls"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/internal/tlsfiles"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	serversEnv     = "MENAGERIE_SERVERS"
	defaultServers = "127.0.0.1:2181"
	defaultTimeout = 15 * time.Second
	// defaultConnectTimeout limits the first attempts to connect.
	defaultConnectTimeout = 10 * time.Second

	authEnv = "MENAGERIE_AUTH"
	tlsEnv  = "MENAGERIE_TLS"
)

// connection is how all commands reach the servers: the flags, or the environment where there is
// no flag, and the values that were made of them.
type connection struct {
	servers        string
	timeout        positiveDuration
	connectTimeout positiveDuration
	auth           []string // SCHEME:CRED or @FILE
	acl            string
	existingChroot bool
	tls            tlsFlags
	verbosity      int

	credentials []credential    // what auth says
	tlsConfig   *tls.Config     // nil without TLS; without what is in files
	tlsFiles    *tlsfiles.Files // nil without files
	nodeACL     []zk.ACL        // nil for that of zksync
}

type tlsFlags struct {
	on, insecure              bool
	ca, cert, key, serverName string
}

// credential is shown to the servers.
type credential struct{ scheme, secret string }

// register declares the flags. Flags that are secret or name files are checked only in resolve,
// whose errors do not repeat them.
func (c *connection) register(root *cobra.Command) {
	c.timeout, c.connectTimeout = positiveDuration(defaultTimeout), positiveDuration(defaultConnectTimeout)
	flags := root.PersistentFlags()
	flags.StringVar(&c.servers, "servers", os.Getenv(serversEnv), "`HOST:PORT,...` and a chroot, such as zk1:2181,zk2:2181/app ("+serversEnv+")")
	flags.Var(&c.timeout, "timeout", "session timeout `D`; the locks of a dead process stay held that long")
	flags.Var(&c.connectTimeout, "connect-timeout", "give up the first connection after `D`")
	flags.StringArrayVar(&c.auth, "auth", nil, "credential `SCHEME:CRED`, or @FILE with one on each line ("+authEnv+"); repeatable")
	flags.StringVar(&c.acl, "acl", "", "`ACCESS` list of new nodes: open, creator or digest:USER:HASH:PERMS,...")
	flags.BoolVar(&c.existingChroot, "existing-chroot", false, "refuse a chroot that does not exist, in place of creating it")
	flags.BoolVar(&c.tls.on, "tls", false, "use TLS; each of the next flags does that, too ("+tlsEnv+")")
	flags.StringVar(&c.tls.ca, "tls-ca", "", "trust the authorities in `FILE` ("+tlsEnv+"_CA)")
	flags.StringVar(&c.tls.cert, "tls-cert", "", "show the certificate in `FILE` ("+tlsEnv+"_CERT)")
	flags.StringVar(&c.tls.key, "tls-key", "", "the key of that certificate is in `FILE` ("+tlsEnv+"_KEY)")
	flags.StringVar(&c.tls.serverName, "tls-server-name", "", "the servers' certificates must have `NAME` ("+tlsEnv+"_SERVER_NAME)")
	flags.BoolVar(&c.tls.insecure, "tls-insecure", false, "trust any server ("+tlsEnv+"_INSECURE)")
	flags.CountVarP(&c.verbosity, "verbose", "v", "report waiting and outages; -vv reports more")
}

// connectionFlags are the flags that name the servers and say how to reach them.
var connectionFlags = []string{"servers", "timeout", "connect-timeout", "auth", "acl", "existing-chroot",
	"tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "tls-insecure"}

// resolve reads the files that the flags name. Its errors are ready to be reported, and contain no secrets.
func (c *connection) resolve(cmd *cobra.Command) error {
	// A script whose variable is empty must not end up on another server, or without its credential,
	// nor stand for election without a name.
	for _, name := range []string{"servers", "acl", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "id"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return usage("--%s is empty: give it a value, or leave the flag out", name)
		}
	}
	var err error
	if c.credentials, err = readCredentials(cmd.Flags().Changed("auth"), c.auth); err != nil {
		return err
	}
	if c.tlsConfig, c.tlsFiles, err = c.tls.config(cmd.Flags().Changed); err != nil {
		return err
	}
	c.nodeACL, err = parseACL(c.acl)
	if err == nil && c.acl == "creator" && len(c.credentials) == 0 && c.tls.cert == "" {
		return usage("--acl creator needs a credential: give one with --auth or --tls-cert")
	}
	return err
}

// options are those of a session for this connection.
func (c *connection) options() []zksync.SessionOption {
	opts := []zksync.SessionOption{zksync.WithTimeout(c.timeout.value())}
	for _, cred := range c.credentials {
		opts = append(opts, zksync.WithAuth(cred.scheme, []byte(cred.secret)))
	}
	if c.tlsConfig != nil {
		opts = append(opts, zksync.WithTLS(c.tlsConfig))
	}
	if f := c.tlsFiles; f != nil {
		opts = append(opts, zksync.WithTLSFiles(f.CA, f.Cert, f.Key))
	}
	if c.existingChroot {
		opts = append(opts, zksync.WithExistingChroot())
	}
	if c.nodeACL != nil {
		opts = append(opts, zksync.WithACL(c.nodeACL...))
	}
	return opts
}

// inherited is the connection for a process of ours. The secrets are in its environment, because a list
// of processes does not show that.
func (c *connection) inherited() (args, env []string) {
	args = []string{"--servers", c.servers, "--timeout", c.timeout.String()}
	for name, value := range map[string]string{
		"acl": c.acl, "tls-ca": c.tls.ca, "tls-cert": c.tls.cert, "tls-key": c.tls.key, "tls-server-name": c.tls.serverName,
	} {
		if value != "" {
			args = append(args, "--"+name, value)
		}
	}
	if c.tlsConfig != nil {
		args = append(args, "--tls", "--tls-insecure="+strconv.FormatBool(c.tls.insecure))
	}
	if c.existingChroot {
		args = append(args, "--existing-chroot")
	}
	lines := make([]string, len(c.credentials))
	for i, cred := range c.credentials {
		lines[i] = cred.scheme + ":" + cred.secret
	}
	return args, []string{authEnv + "=" + strings.Join(lines, "\n")}
}

// readCredentials reads the values of --auth, or else of the environment.
func readCredentials(given bool, values []string) (all []credential, err error) {
	source := "--auth"
	if !given {
		source, values = authEnv, strings.Split(os.Getenv(authEnv), "\n")
	}
	for _, v := range values {
		if v == "" && !given {
			continue
		}
		name, isFile := strings.CutPrefix(v, "@")
		if !isFile {
			cred, ok := parseCredential(v)
			if !ok {
				return nil, usage("%s is not SCHEME:CRED, such as digest:USER:PASSWORD, and not @FILE", source)
			}
			all = append(all, cred)
			continue
		}
		more, err := credentialsOf(source, name)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// credentialsOf reads a file of credentials: one a line, empty lines and those that begin with # left out.
func credentialsOf(source, name string) (all []credential, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		if _, ok := parseCredential(name); ok || strings.Count(name, ":") > 1 { // it may be a secret
			return nil, usage("%s: cannot read the file that is named after the @; SCHEME:CRED is written without @", source)
		}
		return nil, cannotRead(source, name, err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cred, ok := parseCredential(line)
		if !ok {
			return nil, usage("%s: line %d of %s is not SCHEME:CRED, such as digest:USER:PASSWORD", source, i+1, shorten(name))
		}
		all = append(all, cred)
	}
	if len(all) == 0 {
		return nil, usage("%s: %s has no credential in it, want a line SCHEME:CRED such as digest:USER:PASSWORD", source, shorten(name))
	}
	return all, nil
}

func parseCredential(s string) (credential, bool) {
	scheme, secret, ok := strings.Cut(s, ":")
	ok = ok && scheme != "" && secret != "" && !strings.ContainsAny(scheme, " \t@")
	if scheme == "digest" {
		user, _, colon := strings.Cut(secret, ":")
		ok = ok && colon && user != ""
	}
	return credential{scheme, secret}, ok
}

func cannotRead(source, name string, err error) error {
	var why *os.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	return usage("%s: cannot read the file %q: %v", source, shorten(name), err)
}

// config is what the flags and the environment say of TLS; nil if nothing. The files are those that are named, nil if none is.
func (f *tlsFlags) config(changed func(string) bool) (*tls.Config, *tlsfiles.Files, error) {
	// From here on a value's source is its flag, or the variable that stands in for it.
	from := map[string]string{}
	text := func(flag string, value *string) {
		from[flag] = "--" + flag
		env := "MENAGERIE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		if !changed(flag) && os.Getenv(env) != "" {
			*value, from[flag] = os.Getenv(env), env
		}
	}
	onOff := func(flag string, value *bool) error {
		word := strconv.FormatBool(*value)
		text(flag, &word)
		var err error
		if *value, err = strconv.ParseBool(word); err != nil {
			return usage("%s is %q, want true or false", from[flag], shorten(word))
		}
		return nil
	}
	text("tls-ca", &f.ca)
	text("tls-cert", &f.cert)
	text("tls-key", &f.key)
	text("tls-server-name", &f.serverName)
	if err := errors.Join(onOff("tls", &f.on), onOff("tls-insecure", &f.insecure)); err != nil {
		return nil, nil, err
	}
	if changed("tls") && !f.on { // this once, whatever the environment says
		for flag := range from {
			if flag != "tls" && changed(flag) {
				return nil, nil, usage("--tls=false and --%s exclude each other: leave one out", flag)
			}
		}
		*f = tlsFlags{}
	}
	switch {
	case *f == tlsFlags{}:
		return nil, nil, nil
	case f.key == "" && f.cert != "":
		return nil, nil, usage("%s without a key: name the file that has it with --tls-key", from["tls-cert"])
	case f.cert == "" && f.key != "":
		return nil, nil, usage("%s without a certificate: name the file that has it with --tls-cert", from["tls-key"])
	}
	c := &tls.Config{ServerName: f.serverName, InsecureSkipVerify: f.insecure}
	if f.ca == "" && f.cert == "" {
		return c, nil, nil
	}
	files := &tlsfiles.Files{CA: f.ca, Cert: f.cert, Key: f.key}
	var wrong *tlsfiles.Error
	if _, err := files.Config(nil); errors.As(err, &wrong) {
		sources := make([]string, len(wrong.Parts))
		for i, part := range wrong.Parts {
			sources[i] = from["tls-"+part]
		}
		return nil, nil, usage("%s: %s", strings.Join(sources, " and "), wrong.Why)
	}
	return c, files, nil
}
