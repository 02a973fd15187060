// Attached commands, ports and terminals, through two coordinators: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../edge-attachments.test.ts')
})
