// All pages, behind nginx with a path, also with axe-core.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'
import { ALL_PAGES } from '../../support/proxied-pages.ts'

await runBehindProxy(t, 'nginx', ALL_PAGES)
