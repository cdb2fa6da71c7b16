module github.com/go-menagerie/menagerie/adapters/certmagic

go 1.26.0
