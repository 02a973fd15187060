// All pages, behind Caddy with a path, also with axe-core.
import t from 'tap'
import { runBehindProxy } from '../../support/behind-proxy.ts'

await runBehindProxy(t, 'caddy', {
  accessibility: true,
  async importFiles() {
    await import('../dashboard.test.ts')
    await import('../sign-in-page.test.ts')
    await import('./boxes.test.ts')
    await import('./commands.test.ts')
    await import('./conversations.test.ts')
    await import('./conversations-real-box.test.ts')
    await import('./cut-connections.test.ts')
    await import('./files.test.ts')
    await import('./many-boxes.test.ts')
    await import('./accessibility.test.ts')
    await import('./addresses.ts')
    await import('./terminals.test.ts')
    await import('./timeline-and-processes.test.ts')
    await import('./workspace.test.ts')
  },
})
