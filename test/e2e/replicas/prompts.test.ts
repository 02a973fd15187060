// Prompts and environments, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../edge-prompts.test.ts')
  await import('../prompts-suspend.test.ts')
  await import('../environments.test.ts')
  await import('../environments-on-box.test.ts')
})
