// A data directory keeps its isolation: a later start gives nothing weaker unless the operator accepts it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adviseOwnNetwork } from '../../../../coordinator/providers/local/describe-isolation.ts'
import {
  assertNotWeaker,
  deriveRecord,
  type IsolationRecord,
  isWeakerLevel,
  readIsolationRecord,
} from '../../../../coordinator/providers/local/isolation-record.ts'
import type { LevelChoice } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { createDataDir, createMachineSpec, openHost, openProvider } from './support.ts'

const STRONG: IsolationRecord = {
  level: 'bubblewrap',
  network: 'own',
  limits: ['cpu', 'memory', 'pids'],
  hasKeyringFilter: true,
}
const NOTHING = { level: false, network: false, protections: false }
const REASONS = { level: 'bwrap is not installed', network: 'slirp4netns is not installed' }

t.test('names each weaker part, why it is missing, and the setting that accepts it', async (t) => {
  const weaker = {
    level: 'process',
    network: 'host',
    limits: ['cpu'],
    hasKeyringFilter: true,
  } as const
  const check = (current: IsolationRecord, accepted = NOTHING) =>
    assertNotWeaker(STRONG, current, accepted, REASONS)
  t.throws(() => check({ ...weaker, limits: ['cpu'] }), {
    name: 'PermanentProviderError',
    message:
      'The boxes of this data directory would be isolated less than before: isolation level bubblewrap does not work now: bwrap is not installed (BOXWOOD_LOCAL_ISOLATION=process accepts the weaker level); boxes cannot have their own network now: slirp4netns is not installed (BOXWOOD_LOCAL_NETWORK=host accepts the network of this machine); the limits of memory, pids cannot be enforced now (BOXWOOD_PROTECTIONS=any accepts this). Restore what is missing, or set what you accept.',
  })
  t.throws(() => check({ ...STRONG, level: 'namespaces' }), /BOXWOOD_LOCAL_ISOLATION=namespaces/)
  t.throws(() => check({ ...STRONG, network: 'host' }), /BOXWOOD_LOCAL_NETWORK=host/)
  t.throws(() => check({ ...STRONG, limits: [] }), /limits of cpu, memory, pids/)
  t.throws(() => check({ ...STRONG, hasKeyringFilter: false }), /kernel keyrings .*BOXWOOD_PROTECTIONS=any/)
  t.doesNotThrow(() => check({ ...STRONG, hasKeyringFilter: false }, { ...NOTHING, protections: true }))
  t.doesNotThrow(() => check(STRONG))
  t.doesNotThrow(() => check({ ...weaker, limits: [] }, { level: true, network: true, protections: true }))
  t.throws(
    () => check({ ...weaker, limits: [] }, { level: true, network: false, protections: true }),
    /network/,
  )
  t.doesNotThrow(() =>
    assertNotWeaker({ ...weaker, limits: [] }, STRONG, NOTHING, { level: null, network: null }),
  )
  t.ok(isWeakerLevel('process', 'namespaces'))
  t.notOk(isWeakerLevel('bubblewrap', 'namespaces'))
})

const choose = (level: LevelChoice['level'], network: LevelChoice['network'] = 'host'): LevelChoice => ({
  level,
  network,
  unavailable: level === 'process' ? [{ level: 'bubblewrap', reason: 'bwrap is not installed' }] : [],
  networkProblem: null,
  confinement: null,
})

async function open(dataDir: string, choice: LevelChoice, accepted = { ...NOTHING, protections: true }) {
  const host = await openHost(dataDir, { level: 'process', isolation: 'auto', choice, accepted })
  await host.close()
}

t.test('a start that would give a weaker level or network is refused, and changes nothing', async (t) => {
  const dataDir = await createDataDir(t)
  await open(dataDir, choose('bubblewrap', 'own'))
  const record = () => readFileSync(join(dataDir, 'local-isolation.json'), 'utf8')
  const before = record()
  await t.rejects(open(dataDir, choose('process', 'own')), /bwrap is not installed/)
  await t.rejects(open(dataDir, choose('bubblewrap', 'host')), /BOXWOOD_LOCAL_NETWORK=host/)
  t.equal(record(), before)
  await open(dataDir, choose('process', 'own'), { ...NOTHING, level: true, protections: true })
  t.match(readIsolationRecord(dataDir), { level: 'process', network: 'own' })
  await open(dataDir, choose('bubblewrap', 'own'))
  await t.rejects(open(dataDir, choose('process', 'own')), /level bubblewrap does not work now/)
})

t.test('a start at which no level works keeps the record', async (t) => {
  const dataDir = await createDataDir(t)
  await open(dataDir, choose('bubblewrap'))
  await open(dataDir, choose(null))
  await t.rejects(open(dataDir, choose('process')), /level bubblewrap does not work now/)
})

t.test('a damaged record is refused', async (t) => {
  const dataDir = await createDataDir(t)
  const file = join(dataDir, 'local-isolation.json')
  for (const text of ['', '{', '{"level":"none"}']) {
    writeFileSync(file, text)
    await t.rejects(open(dataDir, choose('bubblewrap')), new RegExp(`${file} is damaged`), text)
  }
})

t.test('a box keeps its level, also where the operator accepts a weaker one', async (t) => {
  const dataDir = await createDataDir(t)
  const provider = await openProvider(dataDir, { level: 'process' })
  const spec = createMachineSpec()
  t.teardown(async () => {
    await provider.destroy(spec.boxId)
    await provider.close()
  })
  await provider.create(spec)
  await provider.start(spec)
  await provider.stop(spec.boxId)
  const file = boxPaths(join(dataDir, 'boxes'), spec.boxId).machine
  const machine = JSON.parse(readFileSync(file, 'utf8'))
  const isolation = { ...machine.isolation, level: 'bubblewrap' }
  writeFileSync(file, JSON.stringify({ ...machine, level: 'bubblewrap', isolation }))
  await t.rejects(provider.start(spec), {
    name: 'PermanentProviderError',
    message: /^The box was created at isolation level bubblewrap, and .* level process only/,
  })
  await t.test('its level is the record of a data directory of an earlier version', async (t) => {
    const earlier = await createDataDir(t)
    t.match(deriveRecord([machine.isolation, isolation]), { level: 'bubblewrap', limits: [] })
    t.match(deriveRecord([isolation, machine.isolation]), { level: 'bubblewrap', limits: [] })
    t.equal(readIsolationRecord(earlier), null)
    t.equal(deriveRecord([]), null)
  })
})

t.test('a start without the socket for agents names the reason for the network of the machine', async (t) => {
  const dataDir = await createDataDir(t)
  const networkProblem = 'the socket for agents in /data cannot be created: listen EINVAL'
  const openHere = () =>
    openHost(dataDir, {
      level: 'process',
      isolation: 'process',
      network: 'host',
      networkProblem,
      accepted: NOTHING,
    })
  const host = await openHere()
  t.equal(host.choice.networkProblem, networkProblem)
  t.match(adviseOwnNetwork(host.choice), `Boxes do not have their own network: ${networkProblem}.`)
  await host.close()
  writeFileSync(
    join(dataDir, 'local-isolation.json'),
    JSON.stringify({ level: 'process', network: 'own', limits: [], hasKeyringFilter: false }),
  )
  await t.rejects(openHere(), { message: new RegExp(`own network now: ${networkProblem}`) })
})
