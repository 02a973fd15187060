// All pages, behind Caddy with a path, also with axe-core.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'
import { ALL_PAGES } from '../../support/proxied-pages.ts'

await runBehindProxy(t, 'caddy', ALL_PAGES)
