// The pages with streams and writes, behind nginx with a path. all-behind-nginx.test.ts has the others.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'

await runBehindProxy(t, 'nginx', {
  accessibility: false,
  async importFiles() {
    await import('./addresses.ts')
    await import('../sign-in-page.test.ts')
    await import('./boxes.test.ts')
    await import('./terminals.test.ts')
    await import('./commands.test.ts')
    await import('./files.test.ts')
  },
})
