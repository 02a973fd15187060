// Snapshots, forks and download links, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../download-links.test.ts')
  await import('../forks.test.ts')
  await import('../snapshots-local.test.ts')
})
