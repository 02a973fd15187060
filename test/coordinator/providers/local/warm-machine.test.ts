// A machine that is started before a box needs it becomes that of a box, and only if nothing has changed it.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import type { Provider } from '../../../../coordinator/providers/provider.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { TIERS } from '../../../../shared/tiers.ts'
import { findOwnNetworkProblem } from '../../../support/isolation-levels.ts'
import { describeTree } from '../../../support/tree-manifest.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, createMachineSpec, isRoot, openProvider, waitForFileText } from './support.ts'

/** An agent that waits as the real one does, and then writes what it sees. The real one takes longer to start than the change of the hostname. */
const SCRIPT = `state=$BOXWOOD_STATE
if [ "$BOXWOOD_STANDBY" = 1 ]; then
  : >$state/standby
  while [ ! -e $state/variables.json ] || [ "$(hostname)" = boxwood ]; do sleep 0.02; done
fi
echo "$(hostname)" "$(cat $state/token)" "\${BOXWOOD_STANDBY:-cold}" >~/seen.new
mv ~/seen.new ~/seen`

async function setUp(t: Test, level: Level, script = SCRIPT) {
  const dataDir = await createDataDir(t)
  const network = level === 'bubblewrap' && !isRoot ? 'own' : 'host'
  const missing = network === 'own' && findOwnNetworkProblem()
  const provider = await openProvider(dataDir, {
    level,
    network: missing === false ? network : 'host',
    script,
  })
  const { warm } = provider
  if (warm === undefined) throw new Error('the provider has no warm machines')
  const spec = { ...createMachineSpec(), boxId: newUuid() }
  t.teardown(async () => {
    await provider.destroy(spec.boxId)
    await provider.close()
  })
  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  return {
    ...{ provider, warm, spec, paths, dataDir },
    createWarm: (boxId: string, signal = new AbortController().signal) =>
      warm.create(boxId, spec.coordinatorUrl, signal),
    readPid: () => JSON.parse(readFileSync(paths.machine, 'utf8')).init.pid as number,
    readSeen: () => waitForFileText(join(paths.home, 'seen')),
  }
}

/** With a box that has a machine of its own, which has run. */
async function setUpBox(t: Test, level: Level) {
  const setup = await setUp(t, level)
  const { provider, spec, readSeen } = setup
  await provider.create(spec)
  await provider.start(spec)
  await readSeen()
  return setup
}

/** Skips the rest where the level has none, with the reason. */
function skips(t: Test, warm: NonNullable<Provider['warm']>): boolean {
  if (warm.problem === null) return false
  t.pass('a machine can wait for a box', { skip: warm.problem })
  return true
}

testEachLevel('a box gets the machine that waits', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, readPid, readSeen } = await setUp(t, level)
  if (skips(t, warm)) return
  await createWarm(spec.boxId)
  t.equal(await provider.inspect(spec.boxId), 'running')
  t.notOk(existsSync(join(paths.state, 'token')), 'it cannot connect')
  t.notOk(existsSync(join(paths.home, 'seen')))
  const pid = readPid()

  const { isolation } = await provider.create(spec)
  t.equal(isolation?.level, level)
  t.equal(readPid(), pid)
  t.notOk(existsSync(join(paths.home, 'seen')), 'its agent still waits')
  const tier = 'flow'
  await provider.start({ ...spec, tier, hostname: 'kiwi' })
  t.equal(readPid(), pid, 'the processes are the same')
  const [hostname, token, standby] = (await readSeen()).trim().split(' ')
  if (level !== 'process') t.equal(hostname, 'kiwi')
  t.equal(token, spec.agentToken)
  t.equal(standby, '1')
  const variables = JSON.parse(readFileSync(join(paths.state, 'variables.json'), 'utf8'))
  t.equal(variables.BOXWOOD_BOX, spec.boxId)
  t.ok(Number(variables.BOXWOOD_MEMORY_BYTES) <= TIERS[tier].memoryBytes)
  t.ok(Number(variables.BOXWOOD_MEMORY_BYTES) > TIERS.nano.memoryBytes, 'the size is that of the box')
  t.notOk('BOXWOOD_STANDBY' in variables)
  const { cgroups } = JSON.parse(readFileSync(paths.machine, 'utf8'))
  for (const dir of cgroups)
    for (const name of ['memory.max', 'memory.limit_in_bytes'])
      if (existsSync(join(dir, name)))
        t.equal(Number(readFileSync(join(dir, name), 'utf8')), TIERS[tier].memoryBytes, 'the limit too')
  t.match(readFileSync(join(paths.etc, 'hosts'), 'utf8'), /^127\.0\.1\.1 kiwi$/m)
  t.equal(readFileSync(join(paths.etc, 'hostname'), 'utf8'), 'kiwi\n')

  await provider.start({ ...spec, agentToken: 'bxt_second' })
  t.equal(readPid(), pid, 'a repeated start has no effect but the token')
  t.equal(readFileSync(join(paths.state, 'token'), 'utf8'), 'bxt_second')
  await provider.create(spec)
  t.equal(readPid(), pid, 'a box that has started is not replaced')
  await provider.stop(spec.boxId)
  rmSync(join(paths.home, 'seen'))
  await provider.start(spec)
  t.match(await readSeen(), / cold$/m, 'the next start is that of any box')
})

const CHANGES: Readonly<Record<string, (paths: ReturnType<typeof boxPaths>) => unknown>> = {
  'a file in the home directory': ({ home }) => writeFileSync(join(home, 'planted'), 'x'),
  'a changed file of the same size': ({ home }) => {
    const path = join(home, '.profile')
    const text = existsSync(path) ? readFileSync(path, 'utf8') : 'x'
    writeFileSync(path, text)
    lutimesSync(path, 1, 1)
  },
  'a directory in /tmp': ({ tmp }) => mkdir(join(tmp, 'planted')),
  'a file in /var/tmp': ({ varTmp }) => writeFileSync(join(varTmp, 'planted'), 'x'),
  'a file in the state directory': ({ state }) => writeFileSync(join(state, 'planted'), 'x'),
  'a directory that was replaced': async ({ home }) => {
    renameSync(home, `${home}.old`)
    await mkdir(home)
  },
  'a directory that was removed': ({ varTmp }) => rmSync(varTmp, { recursive: true }),
  'a name that is not UTF-8': ({ tmp }) =>
    writeFileSync(Buffer.concat([Buffer.from(`${tmp}/`), Buffer.from([255])]), ''),
  'very many files': ({ home }) => {
    for (let i = 0; i < 200; i++) writeFileSync(join(home, `${i}`), '')
  },
}

testEachLevel('a machine that something has written to is replaced', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, readPid, readSeen } = await setUp(t, level)
  if (skips(t, warm)) return
  for (const [name, change] of Object.entries(CHANGES)) {
    await createWarm(spec.boxId)
    const pid = readPid()
    await change(paths)
    await provider.create(spec)
    t.equal(await provider.inspect(spec.boxId), 'stopped', name)
    for (const dir of [paths.home, paths.tmp, paths.varTmp])
      t.notOk(existsSync(join(dir, 'planted')), `${name}: nothing of it remains`)
    await provider.start(spec)
    t.not(readPid(), pid)
    t.match(await readSeen(), / cold$/m, name)
    await provider.destroy(spec.boxId)
  }
})

testEachLevel('a machine that has stopped is replaced', async (t, level) => {
  const { provider, warm, createWarm, spec, readSeen } = await setUp(t, level)
  if (skips(t, warm)) return
  await createWarm(spec.boxId)
  await provider.stop(spec.boxId)
  await provider.create(spec)
  await provider.start(spec)
  t.match(await readSeen(), / cold$/m)
})

testEachLevel('a machine that waits gets the files of a snapshot', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, dataDir } = await setUpBox(t, level)
  if (skips(t, warm)) return
  await provider.stop(spec.boxId)
  const uid = lstatSync(paths.home).uid
  const script = `mkdir -p dir/sub && echo text >dir/file && ln dir/file hard && ln -s /etc outside && mkfifo fifo &&
truncate -s 5M sparse && printf x >"$(printf 'name\\377')" && touch -d @-1.5 dir/sub && chmod 4711 dir/file && echo own >.profile &&
chmod 755 . && touch -d @1000000000.123456789 .`
  const asOwner = isRoot ? { uid, gid: uid } : {}
  const { status, stderr } = spawnSync('/bin/sh', ['-c', script], {
    ...asOwner,
    cwd: paths.home,
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
  writeFileSync(join(paths.tmp, 'in-tmp'), 'x')
  const source = { workspaceId: 'ws_1', archiveId: 'snp_1' }
  await provider.capture(spec.boxId, source, 'files')

  const copies = []
  for (const isWarm of [true, false]) {
    const copy = { ...spec, boxId: newUuid(), source }
    t.teardown(() => provider.destroy(copy.boxId))
    if (isWarm) await createWarm(copy.boxId)
    await provider.create(copy)
    t.equal(await provider.inspect(copy.boxId), isWarm ? 'running' : 'stopped')
    const { home, tmp } = boxPaths(join(dataDir, 'boxes'), copy.boxId)
    const owner = { uid: lstatSync(home).uid }
    copies.push({
      mode: lstatSync(home).mode,
      home: describeTree(home, owner),
      tmp: describeTree(tmp, owner),
      at: lstatSync(home, { bigint: true }).mtimeNs,
    })
  }
  t.same(copies[0], copies[1])
  t.equal(copies[0]?.at, 1_000_000_000_123_456_789n)
})

testEachLevel('a machine that waits takes over the copy for a fork', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, dataDir } = await setUpBox(t, level)
  if (skips(t, warm)) return
  const { uid } = lstatSync(paths.home)
  for (const path of [...['a', 'b', 'c'].map((name) => join(paths.home, name)), join(paths.varTmp, 'd')]) {
    writeFileSync(path, 'content')
    if (isRoot) chownSync(path, uid, uid)
  }
  const describe = ({ home, varTmp }: typeof paths) =>
    [home, varTmp].map((dir) => describeTree(dir, { uid: lstatSync(dir).uid }))
  const boxesDir = join(dataDir, 'boxes')
  const fork = async (id: string) => {
    const box = { ...spec, boxId: newUuid(), source: { workspaceId: 'ws_1', archiveId: id } }
    t.teardown(() => provider.destroy(box.boxId))
    await createWarm(box.boxId)
    await provider.copyMachine?.(spec.boxId, box.source, box.boxId)
    return { box, forkPaths: boxPaths(boxesDir, box.boxId), copyDir: join(boxesDir, `.copy-ws_1-${id}`) }
  }
  await provider.stop(spec.boxId)

  const { box, forkPaths, copyDir } = await fork('snp_1')
  const { init } = JSON.parse(readFileSync(forkPaths.machine, 'utf8'))
  await provider.create(box)
  t.equal(await provider.inspect(box.boxId), 'running')
  t.notOk(existsSync(copyDir))
  t.same(describe(forkPaths), describe(paths))
  await provider.create(box)
  t.same(describe(forkPaths), describe(paths), 'a repeated call has no effect')
  rmSync(join(forkPaths.home, 'seen'))
  await provider.start(box)
  t.match(await waitForFileText(join(forkPaths.home, 'seen')), / 1$/m, 'its agent has waited')
  t.equal(JSON.parse(readFileSync(forkPaths.machine, 'utf8')).init.pid, init.pid)

  // The coordinator was killed while it moved the files.
  const second = await fork('snp_2')
  const machine = JSON.parse(readFileSync(second.forkPaths.machine, 'utf8'))
  writeFileSync(second.forkPaths.machine, JSON.stringify({ ...machine, warm: 'filling' }))
  renameSync(join(second.copyDir, 'home/a'), join(second.forkPaths.home, 'a'))
  await provider.create(second.box)
  t.equal(await provider.inspect(second.box.boxId), 'running')
  // The time of the directory itself is that of the interruption.
  t.same(describe(second.forkPaths)[0]?.slice(1), describe(paths)[0]?.slice(1))
  t.notOk(existsSync(second.copyDir))

  // Something has written to the machine: the copy becomes a machine of its own.
  const third = await fork('snp_3')
  writeFileSync(join(third.forkPaths.home, 'planted'), 'x')
  await provider.create(third.box)
  t.equal(await provider.inspect(third.box.boxId), 'stopped')
  t.same(describe(third.forkPaths), describe(paths))
})

testEachLevel('a directory that its owner cannot write to is restored and copied', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, dataDir } = await setUpBox(t, level)
  if (skips(t, warm)) return
  await provider.stop(spec.boxId)
  const { uid } = lstatSync(paths.home)
  const dir = join(paths.home, 'read-only')
  mkdirSync(dir)
  for (const path of [join(dir, 'file'), join(paths.home, 'file')]) writeFileSync(path, 'content')
  if (isRoot) for (const path of [dir, join(dir, 'file'), join(paths.home, 'file')]) chownSync(path, uid, uid)
  chmodSync(dir, 0o500)
  const describe = ({ home }: typeof paths) => describeTree(home, { uid: lstatSync(home).uid })
  for (const archiveId of ['snp_1', 'snp_2']) {
    const source = { workspaceId: 'ws_1', archiveId }
    const copy = { ...spec, boxId: newUuid(), source }
    t.teardown(() => provider.destroy(copy.boxId))
    await createWarm(copy.boxId)
    if (archiveId === 'snp_1') await provider.capture(spec.boxId, source, 'files')
    else await provider.copyMachine?.(spec.boxId, source, copy.boxId)
    await provider.create(copy)
    // Only root may move the directory.
    t.equal(await provider.inspect(copy.boxId), isRoot ? 'running' : 'stopped')
    t.same(describe(boxPaths(join(dataDir, 'boxes'), copy.boxId)), describe(paths))
  }
})

testEachLevel('a machine is replaced when its files are not complete', async (t, level) => {
  const { provider, warm, createWarm, spec, paths } = await setUp(t, level)
  if (skips(t, warm)) return
  await createWarm(spec.boxId)
  const source = { workspaceId: 'ws_1', archiveId: 'snp_1' }
  await t.rejects(provider.create({ ...spec, source }), 'there is no such archive')
  await provider.create(spec)
  t.equal(await provider.inspect(spec.boxId), 'running', 'nothing has been written to it')
  // The coordinator was killed while it moved the files.
  renameSync(paths.state, join(paths.home, 'moved'))
  await mkdir(paths.state)
  await provider.create(spec)
  t.equal(await provider.inspect(spec.boxId), 'stopped')
  t.notOk(existsSync(join(paths.home, 'moved')))
})

testEachLevel('the start of an interrupted creation is not the machine of a box', async (t, level) => {
  const { provider, warm, createWarm, spec, paths, readSeen } = await setUp(t, level)
  if (skips(t, warm)) return
  await createWarm(spec.boxId)
  // The coordinator was killed before it had recorded that the machine is ready.
  const machine = JSON.parse(readFileSync(paths.machine, 'utf8'))
  writeFileSync(paths.machine, JSON.stringify({ ...machine, warm: 'starting' }))
  await provider.create(spec)
  await provider.start(spec)
  t.match(await readSeen(), / cold$/m)
})

testEachLevel('a start that is aborted leaves a machine that can be removed', async (t, level) => {
  const { provider, warm, createWarm, spec, paths } = await setUp(t, level, 'sleep 600')
  if (skips(t, warm)) return
  const aborting = new AbortController()
  const created = createWarm(spec.boxId, aborting.signal)
  const failed = t.rejects(created, { name: 'AbortError' })
  await waitUntil(
    'its init runs',
    () => existsSync(paths.machine) && readFileSync(paths.machine, 'utf8').includes('"init":{'),
  )
  aborting.abort()
  await failed
  await provider.destroy(spec.boxId)
  t.notOk(existsSync(paths.dir))
})
