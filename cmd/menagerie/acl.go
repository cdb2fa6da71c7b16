package main

import (
	"encoding/base64"
	"strings"

	"github.com/go-zookeeper/zk"
)

const wantACL = "want open, creator, or digest:USER:HASH:PERMS, several separated by commas"

// permissions are the letters that ZooKeeper's own tools use.
var permissions = map[rune]int32{
	'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin,
}

// parseACL reads --acl. Its errors do not repeat it: somebody may have written a password for the hash.
func parseACL(s string) ([]zk.ACL, error) {
	switch s {
	case "":
		return nil, nil
	case "open":
		return zk.WorldACL(zk.PermAll), nil
	case "creator":
		return zk.AuthACL(zk.PermAll), nil
	}
	var list []zk.ACL
	for i, entry := range strings.Split(s, ",") {
		parts := strings.Split(entry, ":")
		if len(parts) != 4 || parts[0] != "digest" || parts[1] == "" {
			return nil, usage("entry %d of --acl is malformed: %s", i+1, wantACL)
		}
		if hash, err := base64.StdEncoding.DecodeString(parts[2]); err != nil || len(hash) != 20 {
			return nil, usage("the HASH of entry %d of --acl is malformed: want the SHA-1 of USER:PASSWORD in base64, "+
				`as printf %%s USER:PASSWORD | openssl dgst -sha1 -binary | base64 prints it`, i+1)
		}
		perms, ok := parsePermissions(parts[3])
		if !ok {
			return nil, usage("the PERMS of entry %d of --acl are not letters of cdrwa: create, delete, read, write, admin", i+1)
		}
		list = append(list, zk.ACL{Perms: perms, Scheme: "digest", ID: parts[1] + ":" + parts[2]})
	}
	return list, nil
}

func parsePermissions(s string) (perms int32, ok bool) {
	for _, letter := range s {
		bit, known := permissions[letter]
		if !known {
			return 0, false
		}
		perms |= bit
	}
	return perms, perms != 0
}
