// End-to-end tests of a coordinator in this process, on Postgres: every route of boxes, machines and snapshots, the schedules, the
// admission with billing, and random requests to every route.
import t from 'tap'
import { runOnPostgres } from '../support/on-postgres.ts'

await runOnPostgres(t, async () => {
  await import('./control-plane-boxes.test.ts')
  await import('./box-route-access.test.ts')
  await import('./idempotency-routes.test.ts')
  await import('./feed.test.ts')
  await import('./snapshots.test.ts')
  await import('./machines.test.ts')
  await import('./billing-admission.test.ts')
  await import('./schedules.test.ts')
  await import('./operator.test.ts')
  await import('./payments.test.ts')
  await import('./federation/aws-connect.test.ts')
  await import('./fuzz.test.ts')
})
