// Which test files of pages run behind nginx and Caddy with a path.
import type { ProxiedFiles } from './behind-proxy.ts'

/** The pages with streams and writes. */
export const STREAMING_PAGES: ProxiedFiles = {
  accessibility: false,
  async importFiles() {
    await import('../e2e/dashboard/addresses.ts')
    await import('../e2e/sign-in-page.test.ts')
    await import('../e2e/dashboard/boxes.test.ts')
    await import('../e2e/dashboard/terminals.test.ts')
    await import('../e2e/dashboard/commands.test.ts')
    await import('../e2e/dashboard/files.test.ts')
  },
}

export const ALL_PAGES: ProxiedFiles = {
  accessibility: true,
  async importFiles() {
    await import('../e2e/dashboard/first-actions.test.ts')
    await import('../e2e/sign-in-page.test.ts')
    await import('../e2e/dashboard/boxes.test.ts')
    await import('../e2e/dashboard/commands.test.ts')
    await import('../e2e/dashboard/conversations.test.ts')
    await import('../e2e/dashboard/conversations-real-box.test.ts')
    await import('../e2e/dashboard/cut-connections.test.ts')
    await import('../e2e/dashboard/files.test.ts')
    await import('../e2e/dashboard/many-boxes.test.ts')
    await import('../e2e/dashboard/accessibility.test.ts')
    await import('../e2e/dashboard/addresses.ts')
    await import('../e2e/dashboard/terminals.test.ts')
    await import('../e2e/dashboard/timeline-and-processes.test.ts')
    await import('../e2e/dashboard/workspace.test.ts')
  },
}
