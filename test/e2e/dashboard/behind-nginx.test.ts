// The pages with streams and writes, behind nginx with a path. all-behind-nginx.test.ts has the others.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'
import { STREAMING_PAGES } from '../../support/proxied-pages.ts'

await runBehindProxy(t, 'nginx', STREAMING_PAGES)
