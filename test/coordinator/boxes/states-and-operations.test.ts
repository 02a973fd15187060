// Spec §3, §7.1: the answer of every operation in every state of a box.
import t from 'tap'
import { createMoveBox } from '../../../coordinator/boxes/move.ts'
import { createResizes } from '../../../coordinator/boxes/resize.ts'
import { createSnapshotService } from '../../../coordinator/boxes/snapshots/service.ts'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { DESIRED_STATES, type ObservedState } from '../../../shared/api/boxes.ts'
import { systemClock as clock } from '../../../shared/clock.ts'
import { ApiError, ERRORS } from '../../../shared/errors.ts'
import { OBSERVED_STATES } from '../../../shared/field-values.ts'
import { createTestAdmit } from '../../support/admit.ts'
import { NO_BOX_SECRETS } from '../../support/box-hooks.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'

type State = { desired: (typeof DESIRED_STATES)[number]; observed: ObservedState }

/** The state has no files that can be copied. */
const WITHOUT_FILES: readonly ObservedState[] = ['requested', 'provisioning', 'provision_failed']
/** The box is where the caller wants it: nothing changes meanwhile. */
const isSettled = ({ desired, observed }: State) =>
  desired === (observed === 'deep_sleep' ? 'suspended' : observed)
const isDeleted = ({ desired, observed }: State) =>
  desired === 'terminated' || observed === 'terminating' || observed === 'terminated'

/** Operation → the code with which it is refused in a state of a box that has not been deleted; null: it succeeds. */
const EXPECTED: Record<string, (state: State) => string | null> = {
  wake: ({ observed }) => (observed === 'provision_failed' ? 'box_failed' : null),
  suspend: () => null,
  resize: (state) => (isSettled(state) ? null : 'resize_rejected'),
  move: (state) => (isSettled(state) ? null : 'move_rejected'),
  fork: ({ observed }) => (WITHOUT_FILES.includes(observed) ? 'no_volume' : null),
  template: ({ observed }) => (WITHOUT_FILES.includes(observed) ? 'no_volume' : null),
  snapshot: ({ observed }) => (WITHOUT_FILES.includes(observed) ? 'no_volume' : null),
  rename: () => null,
  'set variables': () => null,
  delete: () => null,
}

t.test('operations in all states', async (t) => {
  const db = await sqliteForTest(t)
  const owner = await createOwner(db)
  const infra = new FakeInfrastructure()
  const regions = ['us-west-2', 'eu-central-1'] as const
  const providers = createProviders(new Map(regions.map((region) => [region, infra.provider])))
  const boxes = createTestBoxService(db, { regions: providers })
  const options = { db, clock, host: TEST_HOST, boxes, admit: createTestAdmit(), schedule: () => undefined }
  const { resize } = createResizes({ ...options, providers })
  const moveBox = createMoveBox({ ...options, regions: providers })
  const snapshots = createSnapshotService({
    ...options,
    boxSecrets: NO_BOX_SECRETS,
    providers: { byRegion: new Map() },
    loadPlanLimits: async () => ({ snapshots: 1000 }),
  })
  let names = 0
  const OPERATIONS: Record<string, (id: string) => Promise<unknown>> = {
    wake: (id) => boxes.wake(owner, id),
    suspend: (id) => boxes.suspend(owner, id),
    resize: (id) => resize(owner, id, 'nano', null),
    move: (id) => moveBox(owner, id, 'eu-central-1'),
    fork: (id) => snapshots.fork(owner, id, {}),
    template: (id) => snapshots.createTemplate(owner, id, { name: `t${names++}` }),
    snapshot: (id) => snapshots.create(owner, { boxId: id, name: 'taken' }),
    rename: (id) => boxes.patch(owner, id, { name: `renamed-${names++}` }),
    'set variables': (id) => boxes.patch(owner, id, { env: {} }),
    delete: (id) => boxes.remove(owner, id),
  }
  t.same(Object.keys(OPERATIONS), Object.keys(EXPECTED))

  for (const observed of OBSERVED_STATES)
    for (const desired of DESIRED_STATES) {
      const state = { desired, observed }
      // A box is never terminating without a request to delete it.
      if (desired !== 'terminated' && isDeleted(state)) continue
      const problems: string[] = []
      for (const [name, operation] of Object.entries(OPERATIONS)) {
        const { id } = await boxes.create(owner, {})
        await db.deleteFrom('jobs').execute()
        await db.deleteFrom('box_moves').execute()
        await db
          .updateTable('boxes')
          .set({ desired_state: desired, observed_state: observed })
          .where('id', '=', id)
          .execute()
        const wanted = isDeleted(state) && name !== 'delete' ? 'not_found' : (EXPECTED[name]?.(state) ?? null)
        const error = await operation(id).then(
          () => null,
          (error: unknown) => error,
        )
        if (error !== null && !(error instanceof ApiError)) throw error
        const code = error?.code ?? null
        if (code !== wanted)
          problems.push(`${name}: ${code} (${error && ERRORS[error.code][0]}) instead of ${wanted}`)
        if (wanted !== null) continue
        const row = await db
          .selectFrom('boxes')
          .select(['desired_state', 'observed_state'])
          .where('id', '=', id)
          .executeTakeFirstOrThrow()
        const written = { wake: 'running', suspend: 'suspended', delete: 'terminated' }[name]
        if (written !== undefined && row.desired_state !== written)
          problems.push(`${name}: the desired state is ${row.desired_state}`)
      }
      t.same(problems, [], `${observed}, desired ${desired}`)
    }
})
