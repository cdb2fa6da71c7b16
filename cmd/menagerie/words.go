package main

import "strings"

// forPeople is the text of an error without the package prefixes, which mean nothing to a
// user of the command.
func forPeople(err error) string {
	return inWords(strings.TrimSuffix(err.Error(), ": misuse"))
}

// inWords is what a text of the library means to a user of the command.
func inWords(s string) string { return alerts.Replace(people.Replace(s)) }

// alerts are what servers of several kinds send to a client that shows no certificate, or one that they do not trust.
var alerts = strings.NewReplacer("tls: bad certificate", "tls: bad certificate"+wantsCertificate, "tls: certificate required", "tls: certificate required"+wantsCertificate)

const wantsCertificate = " (the server wants a client certificate that it trusts: --tls-cert and --tls-key)"

// people has flags where the library names its options.
var people = strings.NewReplacer("zksync: ", "", "bench: ", "", "reentrant: ", "", "zkatomic: ", "", "zkbarrier: ", "", "zkcond: ", "", "zkcron: ", "", "zkdurable: ", "",
	"zkelection: ", "", "zkflight: ", "", "zkgroup: ", "", "zklatch: ", "", "zkmap: ", "", "zkonce: ", "", "zkphaser: ", "", "zkqueue: ", "",
	"zkrate: ", "", "zkrwmutex: ", "", "zksemaphore: ", "", "zkwaitgroup: ", "", "zkwatch: ", "",
	"everywhere, or Resize", "everywhere, or --resize", "its authority with WithTLSFiles", "its authority with --tls-ca", "the authority in WithTLSFiles", "the authority in --tls-ca",
	"it trusts with WithTLSFiles", "it trusts with --tls-cert and --tls-key", "its name as the ServerName of WithTLS", "its name with --tls-server-name",
	"WithAuth", "--auth", "WithACL", "--acl", "WithTLSFiles", "--tls-ca, --tls-cert and --tls-key", "WithTLS", "--tls", "WithTimeout", "--timeout",
	"WithExistingChroot", "--existing-chroot")
