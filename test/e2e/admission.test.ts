// Refusals of billing and policies over HTTP: the response has their fields, nothing is written, and the same request
// can be repeated with its Idempotency-Key. Every route that can be refused asks.
import t from 'tap'
import { ADMISSION_ERRORS, type Refusal } from '../../coordinator/admission/refusal.ts'
import type { AdmissionAction } from '../../coordinator/admission/request.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { serveImagesInOneRegion } from '../support/fake-images.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const policyDenied: Refusal = {
  code: 'policy_denied',
  rule: 'memberMaxTier',
  message: 'The tier is too large.',
}
const insufficient: Refusal = {
  code: 'insufficient_balance',
  balanceMicros: 1,
  requiredMicros: 400,
  burnMicrosPerHour: 100,
  admissionMicrosPerHour: 100,
}
const held: Refusal = { code: 'workspace_held', message: 'The workspace is paused.' }

type Target = { running: string; suspended: string; snapshot: string; member: string }
type Case = {
  /** The route, if it is not the only one of the action. */
  name: string
  action: AdmissionAction
  request: (ids: Target) => [method: string, path: string, body?: unknown]
  refusals: Refusal[]
}

const CREATE_REFUSALS: Refusal[] = [
  insufficient,
  { code: 'tier_unavailable', allowed: ['nano'] },
  { code: 'box_limit', limit: 1 },
  policyDenied,
  held,
  { code: 'workspace_closing' },
]
const RESTORE_REFUSALS: Refusal[] = CREATE_REFUSALS.map((refusal) =>
  refusal.code === 'tier_unavailable' ? { code: 'restore_tier_not_allowed' } : refusal,
)
const HELD_REFUSALS: Refusal[] = [held, { code: 'workspace_closing' }]

const CASES: Case[] = [
  {
    name: 'create',
    action: 'create',
    request: () => ['POST', '/boxes', { name: 'refused' }],
    refusals: CREATE_REFUSALS,
  },
  {
    name: 'create from a snapshot',
    action: 'create',
    request: ({ snapshot }) => ['POST', '/boxes', { fromSnapshotId: snapshot }],
    refusals: CREATE_REFUSALS,
  },
  {
    name: 'enroll',
    action: 'enroll',
    request: () => ['POST', '/machines', {}],
    refusals: [{ code: 'box_limit', limit: 1 }, policyDenied, held, { code: 'workspace_closing' }],
  },
  {
    name: 'wake',
    action: 'wake',
    request: ({ suspended }) => ['POST', `/boxes/${suspended}/wake`],
    refusals: [
      { code: 'wake_rejected', reason: 'balance', cause: 'empty', billingUrl: 'https://example.com/billing' },
      policyDenied,
      held,
      { code: 'workspace_closing' },
    ],
  },
  {
    name: 'patch',
    action: 'patch',
    request: ({ running }) => ['PATCH', `/boxes/${running}`, { autoPauseMin: 600, autoSnapshotHours: 1 }],
    refusals: [
      { code: 'policy_denied', rule: 'autoPauseFloorMin', message: 'The time is too long.' },
      { code: 'workspace_closing' },
    ],
  },
  {
    name: 'give',
    action: 'give',
    request: ({ running, member }) => ['POST', `/boxes/${running}/owner`, { ownerUserId: member }],
    refusals: [policyDenied, { code: 'workspace_closing' }],
  },
  {
    name: 'snapshot',
    action: 'snapshot',
    request: ({ running }) => ['POST', '/snapshots', { boxId: running, name: 'refused' }],
    refusals: HELD_REFUSALS,
  },
  {
    name: 'template',
    action: 'template',
    request: ({ running }) => ['POST', `/boxes/${running}/template`, { name: 'refused' }],
    refusals: HELD_REFUSALS,
  },
  {
    name: 'restore',
    action: 'restore',
    request: ({ snapshot }) => ['POST', `/snapshots/${snapshot}/restore`, {}],
    refusals: RESTORE_REFUSALS,
  },
  {
    name: 'fork',
    action: 'fork',
    request: ({ running }) => ['POST', `/boxes/${running}/fork`, {}],
    refusals: CREATE_REFUSALS,
  },
  {
    name: 'resize',
    action: 'resize',
    request: ({ running }) => ['POST', `/boxes/${running}/resize`, { target_tier: 'pro' }],
    refusals: [
      insufficient,
      { code: 'tier_unavailable', allowed: ['nano'] },
      policyDenied,
      held,
      { code: 'workspace_closing' },
    ],
  },
  {
    name: 'move',
    action: 'move',
    request: ({ running }) => ['POST', `/boxes/${running}/region`, { region: 'eu-central-1' }],
    refusals: HELD_REFUSALS,
  },
  {
    name: 'pull',
    action: 'pull',
    request: () => ['POST', '/images', { image: 'debian:12' }],
    refusals: [
      { code: 'policy_denied', rule: 'allowedImages', message: 'The image is not allowed.' },
      ...HELD_REFUSALS,
    ],
  },
  {
    name: 'share',
    action: 'share',
    request: ({ running }) => ['POST', `/boxes/${running}/port-shares`, { port: 3000 }],
    refusals: [{ code: 'share_links_need_payment' }, ...HELD_REFUSALS],
  },
]

t.test('every action has a route in this test', async (t) => {
  t.same(new Set(CASES.map(({ action }) => action)), new Set(Object.keys(ADMISSION_ERRORS)))
  for (const { name, action, refusals } of CASES)
    t.same(new Set(refusals.map(({ code }) => code)), new Set(ADMISSION_ERRORS[action]), name)
})

const STATUS: Partial<Record<Refusal['code'], number>> = {
  policy_denied: 403,
  restore_tier_not_allowed: 403,
  share_links_need_payment: 402,
}

/** Everything that a request could write. */
async function readState({ instance }: TestCoordinator) {
  const { db } = instance.context
  return Promise.all([
    db
      .selectFrom('boxes')
      .select(['id', 'desired_state', 'desired_region', 'tier', 'auto_pause_min', 'owner_user_id'])
      .execute(),
    db.selectFrom('jobs').selectAll().execute(),
    db.selectFrom('enrollments').selectAll().execute(),
    db.selectFrom('snapshots').selectAll().execute(),
    db.selectFrom('snapshot_jobs').selectAll().execute(),
    db.selectFrom('schedules').selectAll().execute(),
    db.selectFrom('idempotency_keys').selectAll().execute(),
    db.selectFrom('port_shares').selectAll().execute(),
  ])
}

t.test('a refusal is sent with its fields, and writes nothing', async (t) => {
  let refusal: Refusal | null = null
  const asked: AdmissionAction[] = []
  const infra = new FakeInfrastructure()
  const coordinator = await startTestCoordinator(t, {
    infra,
    providers: serveImagesInOneRegion(infra),
    decideAdmission: ({ action }, { actor, workspace }) => {
      t.equal(workspace.id, actor.workspaceId)
      asked.push(action)
      return refusal
    },
  })
  const { api, waitForState } = coordinator
  const session = await createTestSession(coordinator)
  const { json: first } = await api('POST', '/boxes', { name: 'running' })
  const { json: second } = await api('POST', '/boxes', { name: 'suspended' })
  const boxes = { running: first.box.id, suspended: second.box.id }
  for (const id of Object.values(boxes)) await waitForState(id, 'running')
  await api('POST', `/boxes/${boxes.suspended}/suspend`)
  await waitForState(boxes.suspended, 'suspended')
  const { json: taken } = await api('POST', '/snapshots', { boxId: boxes.running, name: 'source' })
  const member = (await createTestSession(coordinator, 'member')).userId
  const ids = { ...boxes, snapshot: taken.snapshot.id, member }

  const { db } = coordinator.instance.context
  const isIdle = async () => {
    const [jobs, snapshotJobs] = await Promise.all([
      db.selectFrom('jobs').select('box_id').execute(),
      db.selectFrom('snapshot_jobs').select('snapshot_id').execute(),
    ])
    return jobs.length === 0 && snapshotJobs.length === 0
  }
  for (const { name, action, request, refusals } of CASES) {
    await waitUntil('no box and no snapshot changes its state', isIdle)
    const [method, path, body] = request(ids)
    const headers = { 'idempotency-key': `key-${name.replaceAll(' ', '-')}` }
    // No key may create a token.
    const options =
      action === 'enroll' ? { ...session, headers: { ...session.headers, ...headers } } : { headers }
    for (const each of refusals) {
      refusal = each
      const before = await readState(coordinator)
      asked.length = 0
      const response = await api(method, path, body, options)
      t.same(asked, [action], `${method} ${path} asks`)
      const { code, message, ...fields } = each
      t.equal(response.status, STATUS[code] ?? 409)
      t.match(response.json, { error: code, message: message ?? String, ...fields })
      t.same(await readState(coordinator), before, `${name}: ${code} writes nothing`)
    }
    refusal = null
    const admitted = await api(method, path, body, options)
    t.match(String(admitted.status), /^20[0-2]$/, `${name}: the same request with the same key is admitted`)
    t.notOk(admitted.headers.has('idempotent-replayed'))
  }
})
