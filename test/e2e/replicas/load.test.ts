// Each isolation level, and a gigabyte from the host of a secret, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../edge-live-processes.test.ts')
  await import('../edge-terminal-levels.test.ts')
  await import('../secrets/many-connections.test.ts')
})
