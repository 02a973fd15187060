// The build of an agent when several coordinators use one database.
import t from 'tap'
import {
  chooseMachineBuild,
  chooseManagedBuild,
} from '../../../../coordinator/agents/upgrades/choose-build.ts'
import { type FleetMember, MANAGED } from '../../../../coordinator/replicas/fleet.ts'

const PLATFORM = 'linux-x64'

const member = (
  id: string,
  version: string,
  build: string | null,
  { startedAt = 0, host = 'hst_a' } = {},
): FleetMember => ({
  id,
  version,
  host,
  startedAt,
  agentBuilds: build === null ? {} : { [PLATFORM]: build, [MANAGED]: build },
  tunnels: 0,
  remainingMs: 15_000,
})

const choose = (members: FleetMember[], ownId: string, agentVersion = '1.0.0+a') =>
  chooseMachineBuild({ members, ownId, agentVersion }, PLATFORM)

t.test(
  'machines get the build of the newest version that is ready, from a coordinator that has it',
  async (t) => {
    const old = member('old', '1.0.0', 'a')
    const other = member('other', '1.0.0', 'a', { startedAt: 5 })
    t.same(choose([old], 'old'), { buildId: 'a', isOffered: true })
    const starting = member('new', '1.1.0', null)
    t.same(choose([old, starting], 'old'), { buildId: 'a', isOffered: true }, 'the newer one is not ready')
    t.same(choose([old, starting], 'new'), { buildId: 'a', isOffered: false })
    const ready = member('new', '1.1.0', 'b')
    for (const id of ['old', 'other'])
      t.same(choose([old, other, ready], id), { buildId: 'b', isOffered: false })
    t.same(choose([old, other, ready], 'new'), { buildId: 'b', isOffered: true })
    const second = member('second', '1.1.0', 'b')
    t.same(choose([old, second, ready], 'second'), { buildId: 'b', isOffered: true }, 'all that have it')
    t.equal(chooseMachineBuild({ members: [old], ownId: 'old', agentVersion: '1' }, 'linux-arm64'), null)
    t.equal(choose([starting], 'new'), null)
  },
)

t.test('of equal versions, the coordinator that has started last decides', async (t) => {
  const first = member('first', '1.0.0', 'a', { startedAt: 1 })
  const last = member('last', '1.0.0', 'b', { startedAt: 2 })
  for (const members of [
    [first, last],
    [last, first],
  ]) {
    t.same(choose(members, 'first'), { buildId: 'b', isOffered: false })
    t.same(choose(members, 'last'), { buildId: 'b', isOffered: true })
  }
  const older = member('older', '0.9.0', 'c', { startedAt: 3 })
  t.same(choose([first, last, older], 'older'), { buildId: 'b', isOffered: false })
})

t.test('no agent is brought to an older version while a coordinator of a newer version runs', async (t) => {
  const old = member('old', '1.0.0', 'a')
  const starting = member('new', '1.1.0', null)
  t.same(choose([old, starting], 'old', '1.1.0+b'), { buildId: 'a', isOffered: false })
  t.same(choose([old, starting], 'old', '0.9.0+c'), { buildId: 'a', isOffered: true })
  t.same(
    choose([old], 'old', '1.1.0+b'),
    { buildId: 'a', isOffered: true },
    'all coordinators are older again',
  )
})

t.test('a coordinator whose lease has ended upgrades none', async (t) => {
  t.same(choose([member('other', '1.0.0', 'a')], 'own'), { buildId: 'a', isOffered: false })
})

t.test('other boxes get the build of the last coordinator of their host', async (t) => {
  const a = member('a', '1.1.0', 'b')
  const b = member('b', '1.0.0', 'a', { host: 'hst_b' })
  const chooseOn = (host: string, ownId: string, members = [a, b]) =>
    chooseManagedBuild({ members, ownId, agentVersion: '1.0.0+a' }, host)
  t.same(chooseOn('hst_a', 'a'), { buildId: 'b', isOffered: true })
  t.same(chooseOn('hst_b', 'b'), { buildId: 'a', isOffered: true })
  t.same(chooseOn('hst_b', 'a'), { buildId: 'a', isOffered: false }, 'the host has another version')
  t.same(chooseOn('hst_a', 'b'), { buildId: 'b', isOffered: false })
  const upgraded = member('b2', '1.1.0', 'of another platform', { host: 'hst_b', startedAt: 1 })
  t.same(chooseOn('hst_b', 'a', [a, b, upgraded]), { buildId: 'of another platform', isOffered: true })
  const returned = member('a2', '1.0.0', 'a', { startedAt: 1 })
  t.same(chooseOn('hst_a', 'a2', [a, returned]), { buildId: 'a', isOffered: true }, 'an older version again')
  t.equal(chooseOn('hst_c', 'a'), null)
})
