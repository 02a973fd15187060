// Commands and files, through two coordinators: each request goes to another coordinator than that before, and so does each connection of the agent.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../edge-commands.test.ts')
})
