// Pausing a local box while its files are captured: no process runs, and no program notices the pause.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { probeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import type { Machine } from '../../../../coordinator/providers/local/machine-file.ts'
import { createMachines } from '../../../../coordinator/providers/local/machines.ts'
import { readStat } from '../../../../coordinator/providers/parts/proc.ts'
import { requires } from '../../../support/requires.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findPidsByArgument, uniqueSleepSeconds } from './find-processes.ts'
import { openProvider, startBox } from './support.ts'

const cgroups = await probeCgroups()
const METHODS = ['freezer', 'signals'] as const

const OBSERVE_MS = 150
const count = (name: string) => `i=0
while :; do
  i=$((i+1))
  echo $i >"$HOME/${name}.new"
  mv "$HOME/${name}.new" "$HOME/${name}"
  sleep 0.02
done`

/**
 * Starts a box and a coordinator that can pause it.
 * @param method signals: the box has no cgroups, as where the coordinator may not create any
 */
async function startPausable(test: Test, level: Level, method: (typeof METHODS)[number], script: string) {
  const box = await startBox(test, { level, script })
  const { paths, dataDir, spec, provider } = box
  const file = readFileSync(paths.machine, 'utf8')
  if (method === 'signals') {
    const machine = JSON.parse(file) as Machine
    writeFileSync(paths.machine, JSON.stringify({ ...machine, cgroups: [] }))
    test.teardown(() => existsSync(paths.dir) && writeFileSync(paths.machine, file))
  }
  test.teardown(() => provider.stop(spec.boxId))
  const log = { debug: () => {}, warn: () => {} }
  const openMachines = () => createMachines({ dataDir, boxesDir: join(dataDir, 'boxes'), cgroups, log })
  const machines = openMachines()
  const readCount = (name = 'count') => Number(readFileSync(box.inHome(name), 'utf8'))
  return { ...box, machines, openMachines, readCount, pause: () => machines.pause(spec.boxId) }
}

for (const method of METHODS) {
  if (method === 'freezer' && !cgroups.canFreeze) {
    t.test('pauses a box with the freezer', { skip: 'this user has no cgroup freezer' }, async () => {})
    continue
  }
  testEachLevel(
    `pauses every process of a box with ${method}, and a crashed coordinator leaves none paused`,
    async (test, level) => {
      const script = `(setsid sh -c '${count('other')}' &)\n(${count('count')}) &`
      const box = await startPausable(test, level, method, script)
      const { machines, openMachines, readCount, spec, dataDir, inHome } = box
      await waitUntil('the processes run', () => existsSync(inHome('count')) && existsSync(inHome('other')))

      const resume = await box.pause()
      const counts = [readCount(), readCount('other')]
      await sleep(OBSERVE_MS)
      test.same([readCount(), readCount('other')], counts, 'no process runs')
      test.equal(await machines.inspect(spec.boxId), 'running')
      await sleep(OBSERVE_MS)
      test.same([readCount(), readCount('other')], counts, 'an inspection does not end the pause')
      resume?.()
      await waitUntil('the first process continues', () => readCount() > Number(counts[0]))
      await waitUntil('the second process continues', () => readCount('other') > Number(counts[1]))

      await box.pause()
      const pausedAt = readCount()
      test.equal(await openMachines().inspect(spec.boxId), 'running', 'another coordinator inspects it')
      await waitUntil('the process continues', () => readCount() > pausedAt)

      await openMachines().pause(spec.boxId)
      const pausedAgainAt = readCount()
      const restarted = await openProvider(dataDir, { level })
      test.teardown(() => restarted.close())
      await waitUntil('the process continues when a coordinator starts', () => readCount() > pausedAgainAt)

      await openMachines().pause(spec.boxId)
      await restarted.stop(spec.boxId)
      test.equal(await restarted.inspect(spec.boxId), 'stopped')
      test.equal(await machines.pause(spec.boxId), null, 'a stopped machine has nothing to pause')
    },
    method === 'signals' ? ['bubblewrap', 'process'] : ['process'],
  )
}

testEachLevel(
  'a box can be frozen and thawed while it is paused, and its processes run when both have ended',
  async (test, level) => {
    if (!cgroups.canFreeze) return void test.pass('', { skip: 'this user has no cgroup freezer' })
    const box = await startPausable(test, level, 'freezer', `(${count('count')}) &`)
    const { machines, openMachines, readCount, spec, inHome } = box
    const thaw = async (by = machines) => {
      const machine = await by.load(spec.boxId)
      if (machine !== null) by.thaw(machine)
    }
    await waitUntil('the process runs', () => existsSync(inHome('count')))
    const resume = await box.pause()
    const pausedAt = readCount()
    test.equal(await machines.freeze(spec.boxId), true)
    test.equal(await machines.inspect(spec.boxId), 'frozen')
    resume?.()
    test.equal(await machines.inspect(spec.boxId), 'frozen', 'after the end of the pause')
    await sleep(OBSERVE_MS)
    test.equal(readCount(), pausedAt)
    await thaw()
    await waitUntil('the process continues', () => readCount() > pausedAt)

    const resumeSecond = await box.pause()
    const pausedAgainAt = readCount()
    await machines.freeze(spec.boxId)
    await thaw()
    test.equal(await machines.inspect(spec.boxId), 'running')
    await sleep(OBSERVE_MS)
    test.equal(readCount(), pausedAgainAt, 'the pause lasts longer than the freeze')
    resumeSecond?.()
    await waitUntil('the process continues', () => readCount() > pausedAgainAt)

    await box.pause()
    await machines.freeze(spec.boxId)
    const restarted = openMachines()
    test.equal(await restarted.inspect(spec.boxId), 'frozen', 'after a restart of the coordinator')
    const frozenAt = readCount()
    await thaw(restarted)
    await waitUntil('the process continues', () => readCount() > frozenAt)
  },
  ['process'],
)

testEachLevel(
  'a frozen box stays frozen when it is paused and resumed',
  async (test, level) => {
    if (!cgroups.canFreeze) return void test.pass('', { skip: 'this user has no cgroup freezer' })
    const { machines, spec, pause } = await startPausable(test, level, 'freezer', '')
    test.equal(await machines.freeze(spec.boxId), true)
    test.equal(await pause(), null)
    test.equal(await machines.inspect(spec.boxId), 'frozen')
  },
  ['process'],
)

for (const shell of ['bash', 'zsh'] as const) {
  t.test(
    `a pause with signals stops no job of an interactive ${shell}, and continues no stopped job`,
    { skip: requires('script', shell) },
    async (test) => {
      const stoppedSeconds = uniqueSleepSeconds()
      const options = shell === 'bash' ? '--norc --noprofile -i' : '-f -i'
      // The first job stops itself, the second runs in the foreground.
      const box = await startPausable(
        test,
        'process',
        'signals',
        `cat >"$HOME/job" <<'EOF'
${count('count')}
EOF
mkfifo "$HOME/input"
script -qf -c '${shell} ${options}' "$HOME/typescript" <"$HOME/input" >/dev/null 2>&1 &
exec 3>"$HOME/input"
echo "sh -c 'kill -STOP \\$\\$; exec sleep 1' ${stoppedSeconds} &" >&3
echo 'sh $HOME/job' >&3`,
      )
      const { inHome, readCount } = box
      await waitUntil('the job runs', () => existsSync(inHome('count')))
      const isJobStopped = () =>
        findPidsByArgument(stoppedSeconds).some((pid) => readStat(pid)?.state === 'T')
      await waitUntil('the first job is stopped', isJobStopped)
      // zsh reports the first job's own stop at any time: one report is expected, a second one would be new output.
      const readTerminal = () =>
        readFileSync(inHome('typescript'), 'utf8').replace(/\[1\] +\+ suspended \(signal\)[^\n]*\n/, '')
      // script writes the output of the shell later than the shell.
      await waitUntil('the prompt and the second command', () =>
        /[%$#] [^\n]*sh \$HOME\/job[^\n]*\n$/.test(readTerminal()),
      )
      const before = readTerminal()
      for (let round = 0; round < 10; round++) {
        const resume = await box.pause()
        const pausedAt = readCount()
        await sleep(20)
        test.equal(readCount(), pausedAt, 'the job is paused')
        resume?.()
        await waitUntil('the job continues', () => readCount() > pausedAt)
      }
      test.equal(readTerminal(), before, 'the shell prints nothing')
      test.ok(isJobStopped(), 'the stopped job is still stopped')
    },
  )
}

for (const method of METHODS)
  testEachLevel(
    `two captures at once continue the processes that were paused with ${method}`,
    async (test, level) => {
      if (method === 'freezer' && !cgroups.canFreeze)
        return void test.pass('', { skip: 'this user has no cgroup freezer' })
      const box = await startPausable(test, level, method, `(${count('count')}) &`)
      const { provider, spec, readCount, inHome } = box
      await waitUntil('the process runs', () => existsSync(inHome('count')))
      const capture = (archiveId: string) =>
        provider.capture(spec.boxId, { workspaceId: 'ws_1', archiveId }, 'files')
      const aborted = provider.capture(
        spec.boxId,
        { workspaceId: 'ws_1', archiveId: 'snp_3' },
        'files',
        AbortSignal.abort(new Error('the reason')),
      )
      const infos = await Promise.all([
        capture('snp_1'),
        capture('snp_2'),
        test.rejects(aborted, { message: 'the reason' }),
      ])
      test.type(infos[0].pausedMs, 'number')
      test.type(infos[1].pausedMs, 'number', 'the second capture has paused the processes again')
      const capturedAt = readCount()
      await waitUntil('the process continues', () => readCount() > capturedAt)
    },
    ['process'],
  )

testEachLevel(
  'a capture fails when the box is woken or stopped meanwhile',
  async (test, level) => {
    if (!cgroups.canFreeze) return void test.pass('', { skip: 'this user has no cgroup freezer' })
    const { machines, spec, paths } = await startPausable(test, level, 'freezer', '')
    const { boxId } = spec
    const begin = async () => {
      const interruption = new AbortController()
      const machine = await machines.beginCapture(boxId, interruption)
      if (machine === null) throw new Error('The machine does not exist.')
      const resume = machine.init === null ? null : await machines.pause(boxId, interruption)
      return { machine, resume, signal: interruption.signal }
    }
    const failure = { message: /started or stopped while its files were read/ }
    const isInterrupted = ({ signal }: { signal: AbortSignal }, message: string) =>
      test.match(signal.reason, failure, message)

    await machines.freeze(boxId)
    const undisturbed = await begin()
    test.equal(undisturbed.resume, null)
    machines.endCapture(boxId)
    const frozen = await begin()
    machines.thaw(frozen.machine)
    isInterrupted(frozen, 'a frozen box was woken')
    machines.endCapture(boxId)

    const paused = await begin()
    paused.resume?.()
    machines.endCapture(boxId)
    const running = await begin()
    await machines.stopExisting(boxId)
    isInterrupted(running, 'a running box was stopped')
    machines.endCapture(boxId)

    const stopped = await begin()
    await machines.stopRemaining(paths, stopped.machine)
    isInterrupted(stopped, 'a stopped box was started')
    for (const { signal } of [undisturbed, paused]) test.notOk(signal.aborted)
  },
  ['process'],
)

testEachLevel(
  'a FIFO in place of the record of a pause does not block the coordinator',
  async (test, level) => {
    const { machines, spec, paths, pause } = await startPausable(test, level, 'signals', '')
    spawnSync('mkfifo', [paths.pauseRecord])
    test.equal(await machines.inspect(spec.boxId), 'running')
    test.notOk(existsSync(paths.pauseRecord))
    const resume = await pause()
    test.ok(existsSync(paths.pauseRecord))
    resume?.()
  },
  ['process'],
)
