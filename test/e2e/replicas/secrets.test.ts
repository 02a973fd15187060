// Secrets and credentials, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../secrets/tools.test.ts')
  await import('../federation/credentials.test.ts')
})
