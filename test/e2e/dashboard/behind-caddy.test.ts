// The pages with streams and writes, behind Caddy with a path. all-behind-caddy.test.ts has the others.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'
import { STREAMING_PAGES } from '../../support/proxied-pages.ts'

await runBehindProxy(t, 'caddy', STREAMING_PAGES)
