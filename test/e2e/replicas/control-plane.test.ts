// End-to-end tests through two coordinators on one Postgres database: each request goes to another coordinator than that before.
import t from 'tap'
import { runOnReplicas } from '../../support/on-replicas.ts'

await runOnReplicas(t, async () => {
  await import('../control-plane-boxes.test.ts')
  await import('../feed.test.ts')
  await import('../idempotency-routes.test.ts')
  await import('../open-requests.test.ts')
  await import('../policies.test.ts')
  await import('../members.test.ts')
  await import('../snapshots.test.ts')
  await import('../box-route-access.test.ts')
  await import('../schedules.test.ts')
  await import('../tickets.test.ts')
  await import('../deletions.test.ts')
  await import('../machines.test.ts')
  await import('../../coordinator/team/sessions.test.ts')
})
