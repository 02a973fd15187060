// Access, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../access/matrix.test.ts')
  await import('../access/strangers.test.ts')
  await import('../access/operator.test.ts')
  await import('../operator.test.ts')
  await import('../give-box.test.ts')
  await import('../patch-box.test.ts')
  await import('../federation/keys.test.ts')
  await import('../zero-data-retention.test.ts')
  await import('../../coordinator/identity/sessions/sign-in.test.ts')
  await import('../../coordinator/identity/sessions/owner-link.test.ts')
})
