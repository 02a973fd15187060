// What a box does next, by its desired state, observed state and job.
import t from 'tap'
import { plan, type Situation } from '../../../../coordinator/boxes/lifecycle/plan.ts'

/** `desired observed [op step]` → `op step`, or null: nothing to do. */
function planFor(text: string, facts: Partial<Situation> = {}): string | null {
  const [desired, observed, op, step] = text.split(' ')
  const situation = {
    ...{ suspendedAs: null, hasArchive: false, hasLeftovers: false },
    ...{ desired, observed, job: op === undefined ? null : { op, step } },
    ...facts,
  }
  const next = plan(situation as Situation)
  return next && `${next.op} ${next.step}`
}

const FROZEN = { suspendedAs: 'frozen' } as const
const STOPPED = { suspendedAs: 'stopped' } as const
const ARCHIVED = { hasArchive: true }
const LEFTOVERS = { hasLeftovers: true }

const CASES: [situation: string, next: string | null, facts?: Partial<Situation>][] = [
  ['running running', null],
  ['suspended suspended', null],
  ['suspended deep_sleep', null, ARCHIVED],
  ['running provision_failed', null],
  ['terminated provision_failed', 'delete collect'],
  ['terminated terminated', null],
  // A create is not reversed midway, except by a delete.
  ['suspended bootstrapping create connect', 'create connect'],
  ['terminated bootstrapping create start', 'delete collect'],
  // Suspend and wake.
  ['suspended running', 'suspend freeze'],
  ['running running suspend freeze', null],
  ['running suspending suspend stop', 'suspend stop'],
  ['suspended waking wake connect', 'suspend freeze'],
  ['running suspended', 'wake start', FROZEN],
  ['running suspended', 'wake start', STOPPED],
  ['running deep_sleep', 'wake unpack', ARCHIVED],
  ['running waking wake start', 'wake start'],
  // The stop of a frozen box can be cancelled until it begins.
  ['suspended suspended stop stop', 'stop stop', FROZEN],
  ['running suspended stop stop', 'wake start', FROZEN],
  ['running suspended stop stop', 'stop stop', STOPPED],
  // Deep sleep can be cancelled until the machine is removed.
  ['suspended suspended sleep archive', 'sleep archive', { ...STOPPED, ...ARCHIVED }],
  ['running suspended sleep archive', 'wake unpack', { ...STOPPED, ...ARCHIVED }],
  ['running suspended sleep discard', 'sleep discard', { ...STOPPED, ...ARCHIVED }],
  // A resize can be left at any step: the next start uses the tier.
  ['running running resize stop', 'resize stop'],
  ['running resizing resize start', 'resize start'],
  ['suspended running resize stop', 'suspend freeze'],
  ['suspended resizing resize start', 'suspend freeze'],
  // A move ends in one of the regions.
  ['running migrating move transfer', 'move transfer', ARCHIVED],
  ['suspended migrating move start', 'move start', ARCHIVED],
  ['running suspended move stop', 'move stop', { ...FROZEN, ...ARCHIVED }],
  ['terminated migrating move transfer', 'delete collect', ARCHIVED],
  // A lost agent.
  ['running degraded recover connect', 'recover connect'],
  ['suspended degraded recover connect', 'suspend freeze'],
  // What is left is removed when nothing else is to do.
  ['running running', 'clean_up clean_up', LEFTOVERS],
  ['suspended suspended', 'clean_up clean_up', { ...STOPPED, ...LEFTOVERS }],
  ['suspended running clean_up clean_up', 'suspend freeze', LEFTOVERS],
  ['terminated running clean_up clean_up', 'delete collect', LEFTOVERS],
]

for (const [situation, next, facts] of CASES)
  t.test(`${situation} ${JSON.stringify(facts ?? {})} → ${next}`, async (t) => {
    t.equal(planFor(situation, facts), next)
  })
