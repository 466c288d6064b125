"""A server on stdio that passes everything on to one that runs over HTTP. For `ragmemory bridge`."""
