// Terminating the processes of a box that a scan of /proc can miss.
import { type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  createCgroups,
  probeCgroups,
  removeCgroups,
} from '../../../../coordinator/providers/local/cgroups.ts'
import { chooseUid } from '../../../../coordinator/providers/local/directories.ts'
import { boxPaths, type Machine } from '../../../../coordinator/providers/local/machine-file.ts'
import { terminateProcesses } from '../../../../coordinator/providers/local/terminate-processes.ts'
import { readIdentity } from '../../../../coordinator/providers/parts/proc.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { requires } from '../../../support/requires.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createDataDir, isRoot, startBox } from './support.ts'

const cgroups = await probeCgroups()
const limitsPids = cgroups.controllers.includes('pids')

function getSkipReason(isAvailable: boolean, requirement: string): string | false {
  return requires('cc') || (isAvailable ? false : `needs ${requirement}`)
}

/** Compiles a file of `fixtures` into `dir`. */
function compile(test: Test, name: string, dir: string): string {
  const program = join(dir, name)
  const source = join(import.meta.dirname, 'fixtures', `${name}.c`)
  const compiled = spawnSync('cc', ['-O2', '-pthread', '-o', program, source], { encoding: 'utf8' })
  test.equal(compiled.status, 0, compiled.stderr)
  return program
}

/** Runs a chain of processes that fork and exit, until the test ends. Returns its data directory. */
async function startChain(test: Test, prefix: string, options: SpawnOptions, mode = '') {
  const dir = await createDataDir(test)
  chmodSync(dir, 0o777)
  const program = compile(test, 'fork-chain', dir)
  const script = `${prefix}\nexec ${program} ${dir} ${mode}`
  const child = spawn('/bin/sh', ['-c', script], { ...options, stdio: 'ignore', env: {} })
  test.teardown(() => writeFileSync(join(dir, 'stop'), ''))
  await once(child, 'exit')
  rmSync(join(dir, 'alive'), { force: true })
  await waitUntil('the chain runs', () => existsSync(join(dir, 'alive')))
  return dir
}

function createMachine(dataDir: string, fields: Partial<Machine>) {
  const boxId = newUuid()
  const stopped = { uid: null, level: 'process', isolation: null, init: null, cgroups: [] } as const
  const machine: Machine = { ...stopped, cgroups: [], boxId, ...fields }
  return { paths: boxPaths(join(dataDir, 'boxes'), boxId), machine }
}

/** The kernel counts the processes of a user: with a limit of one process, the user cannot execute a second one. */
const hasProcesses = (uid: number): boolean =>
  spawnSync('prlimit', ['--nproc=1', 'setpriv', `--reuid=${uid}`, '--clear-groups', 'true']).status !== 0

t.test(
  'kills processes that fork and exit, by uid',
  { skip: getSkipReason(isRoot, 'root') },
  async (test) => {
    const uid = chooseUid(new Set())
    const dataDir = await startChain(test, '', { uid, gid: uid })
    test.ok(hasProcesses(uid))
    const { paths, machine } = createMachine(dataDir, { uid })
    await terminateProcesses(paths, machine, 0)
    // Killed processes count until their parent has reaped them.
    await waitUntil('the user has no processes', () => !hasProcesses(uid))
  },
)

t.test(
  'fails when the box kills the command that kills its processes, until none is left',
  { skip: getSkipReason(isRoot, 'root') },
  async (test) => {
    const uid = chooseUid(new Set())
    const dataDir = await startChain(test, '', { uid, gid: uid }, 'kill')
    const { paths, machine } = createMachine(dataDir, { uid })
    const isTerminated = await terminateProcesses(paths, machine, 0, 500).then(
      () => true,
      (error: Error) => {
        test.match(error.message, 'Processes of the box survived SIGKILL')
        return false
      },
    )
    // The command may have been faster than the box. Killed processes count until their parent has reaped them.
    if (isTerminated) await waitUntil('the user has no processes', () => !hasProcesses(uid))
    writeFileSync(join(dataDir, 'stop'), '')
    await waitUntil('the chain has ended', () => !hasProcesses(uid))
    await terminateProcesses(paths, machine, 0)
  },
)

t.test(
  'kills processes that fork and exit, by cgroup',
  { skip: getSkipReason(limitsPids, 'the pids controller') },
  async (test) => {
    const dirs = createCgroups(cgroups, newUuid(), 'nano')
    test.teardown(() => removeCgroups(dirs))
    const dataDir = await startChain(test, dirs.map((dir) => `echo $$ >${dir}/cgroup.procs`).join('\n'), {})
    const { paths, machine } = createMachine(dataDir, { cgroups: dirs })
    await terminateProcesses(paths, machine, 0)
    const counter = dirs.map((dir) => join(dir, 'pids.current')).find(existsSync) ?? ''
    await waitUntil('the kernel counts no process', () => readFileSync(counter, 'utf8').trim() === '0')
  },
)

t.test(
  'stops a box whose processes fork and exit',
  { skip: getSkipReason(isRoot || limitsPids, 'root or the pids controller') },
  async (test) => {
    const dataDir = await createDataDir(test)
    const program = compile(test, 'fork-chain', dataDir)
    const { provider, spec, inHome } = await startBox(test, {
      level: 'process',
      dataDir,
      script: `${program} "$HOME"`,
    })
    test.teardown(() => existsSync(inHome('.')) && writeFileSync(inHome('stop'), ''))
    await waitUntil('the chain runs', () => existsSync(inHome('alive')))
    await provider.stop(spec.boxId)
    test.equal(await provider.inspect(spec.boxId), 'stopped')
  },
)

t.test('kills a process whose main thread has exited', { skip: getSkipReason(true, '') }, async (test) => {
  const dataDir = await createDataDir(test)
  const child = spawn(compile(test, 'exited-main-thread', dataDir), { stdio: 'ignore' })
  test.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const status = `/proc/${child.pid}/status`
  await waitUntil('the main thread has exited', () => /^State:\tZ/m.test(readFileSync(status, 'utf8')))
  const init = readIdentity(child.pid ?? 0)
  test.ok(init, 'the process is still running')
  const { paths, machine } = createMachine(dataDir, { init })
  await terminateProcesses(paths, machine, 0)
  const [, signal] = await exited
  test.match(signal, /^SIG(TERM|KILL)$/)
})
