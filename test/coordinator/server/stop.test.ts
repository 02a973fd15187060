// The order in which a coordinator stops: one of several serves requests until the others have taken over.
import t from 'tap'
import type { FleetMember } from '../../../coordinator/replicas/fleet.ts'
import { createStop, type StopOptions } from '../../../coordinator/server/stop.ts'

type Own = {
  others: readonly (number | null)[] | Error | null
  inFlight?: () => number
  isLeaseValid?: boolean
}

/** @param others the numbers of agents of the other coordinators; null: there is one coordinator */
function createFake({ others, inFlight = () => 0, isLeaseValid = true }: Own) {
  const steps: string[] = []
  const add = (step: string) => () => void steps.push(step)
  const health: StopOptions['health'] = { phase: 'ready' }
  const toMember = (tunnels: number | null, index: number) =>
    ({ id: `other ${index}`, tunnels }) as FleetMember
  const fleet = {
    async read() {
      if (others instanceof Error) throw others
      return [{ id: 'own', tunnels: 5 } as FleetMember, ...(others ?? []).map(toMember)]
    },
  } as unknown as NonNullable<StopOptions['replica']['fleet']>
  const stop = createStop({
    health,
    http: {
      getInFlightCount: inFlight,
      beginLeaving: add(`close connections (${health.phase})`),
      stopListening: add('stop listening'),
      rejectNewRequests: add('reject'),
    },
    tls: { stopListening: add('stop listening with TLS') },
    modules: {
      leave: async () => void steps.push(`leave (${health.phase})`),
      beginStop: add('begin'),
      drain: async () => void steps.push('drain'),
    },
    replica: { id: 'own', fleet: others === null ? null : fleet, isLeaseValid },
    log: { warn: add('warn') },
  })
  return { stop, steps, health }
}

t.test('the only coordinator refuses requests at once', async (t) => {
  const { stop, steps, health } = createFake({ others: null })
  await stop.drain(1_000)
  t.same(steps, ['reject', 'begin', 'drain'])
  t.equal(health.phase, 'draining')
})

t.test('one of several refuses them when it does not listen any more', async (t) => {
  const { stop, steps } = createFake({ others: [3] })
  await stop.drain(1_000)
  t.same(steps.slice(1), [
    'leave (draining)',
    'begin',
    'stop listening',
    'stop listening with TLS',
    'reject',
    'drain',
  ])
  t.match(steps[0], 'close connections')
})

t.test('without another one that accepts agents, it stops as the only one', async (t) => {
  for (const others of [[], [null], new Error('the database does not respond')]) {
    const { stop, steps } = createFake({ others })
    await stop.drain(1_000)
    t.same(
      steps.filter((step) => step !== 'warn'),
      ['reject', 'begin', 'drain'],
    )
  }
  const { stop, steps } = createFake({ others: [3], isLeaseValid: false })
  await stop.drain(1_000)
  t.same(steps, ['reject', 'begin', 'drain'], 'it has lost its lease')
})

t.test('requests in flight are waited for, for a limited time', async (t) => {
  let left = 3
  const { stop, steps } = createFake({ others: [3], inFlight: () => left-- })
  await stop.begin()
  t.notOk(steps.includes('stop listening'))
  await stop.finishRequests(60_000)
  t.ok(left < 0, 'until there are none')
  const endless = createFake({ others: [3], inFlight: () => 1 })
  await endless.stop.drain(50)
  t.equal(endless.steps.at(-1), 'drain')
})
