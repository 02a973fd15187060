// The two ways to make a process are one to whoever runs a command.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import t, { type Test } from 'tap'
import { loadNativeSpawn } from '../../../agent/exec/native-spawn.ts'
import { createSpawner, type Spawner, type SpawnerKind } from '../../../agent/exec/spawner.ts'
import { waitUntil } from './exec-app.ts'

const SPAWNER = new URL('../../../agent/exec/spawner.ts', import.meta.url).href
const ENV = { PATH: '/usr/bin:/bin', MARK: 'a b' }

async function run(spawner: Spawner, command: string, cwd = '/', env: Record<string, string> = ENV) {
  const chunks: Buffer[] = []
  const started = await spawner.start(command, {
    cwd,
    env,
    onStdout: (chunk) => void chunks.push(Buffer.from(chunk)),
    onStderr: (chunk) => void chunks.push(Buffer.from(chunk)),
  })
  const exit = await started.exit
  return { ...exit, pid: started.pid, running: started.isRunning(), text: Buffer.concat(chunks).toString() }
}

/** Children of this process that nobody has waited for. */
const zombies = (): number =>
  readdirSync('/proc').filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' && Number(parent) === process.pid
    } catch {
      return false
    }
  }).length

/** The kernel stops on these, or ignores them, rather than end the process. */
const DO_NOT_END = ['SIGCHLD', 'SIGCONT', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGWINCH']
/** One number, two names; the other is the one told. */
const OTHER_NAMES = ['SIGIOT', 'SIGPOLL']

async function holds(t: Test, spawner: Spawner) {
  t.teardown(() => spawner.close())
  t.match(await run(spawner, 'exit 7'), { exitCode: 7, signal: null, running: false })
  t.match(await run(spawner, 'exit 143'), { exitCode: 143, signal: null })
  for (const [name, number] of Object.entries(constants.signals)) {
    if (DO_NOT_END.includes(name) || OTHER_NAMES.includes(name)) continue
    const ended = await run(spawner, `ulimit -c 0; kill -${number} $$`)
    t.match(ended, { exitCode: null, signal: name.slice('SIG'.length), running: false }, name)
  }
  t.match(await run(spawner, 'echo "$0 $MARK $(pwd)"', '/tmp'), { text: 'sh a b /tmp\n' })
  t.match(await run(spawner, '-no-such-option'), { exitCode: 127 })
  t.match(await run(spawner, 'cat; echo oops >/dev/stderr'), { exitCode: 0, text: 'oops\n' })
  const own = openSync(import.meta.filename, 'r')
  t.notMatch((await run(spawner, 'ls -l /proc/self/fd')).text, /spawner\.test/, 'nothing of ours is open')
  closeSync(own)
  const signals = (await run(spawner, 'grep -E "Sig(Blk|Ign)" /proc/self/status')).text
  t.equal(signals, 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n')
  const { pid, text } = await run(spawner, 'cut -d" " -f5,6 /proc/$$/stat')
  t.equal(text, `${pid} ${pid}\n`, 'leads a group and a session of its own')
  await t.rejects(run(spawner, 'true', '/no/such/folder'), { code: 'ENOENT' })
  await t.rejects(run(spawner, 'true', import.meta.filename), {
    code: 'ENOTDIR',
    errno: -constants.errno.ENOTDIR,
  })
  await t.rejects(run(spawner, `: ${'x'.repeat(200_000)}`), { code: 'E2BIG' })
  await t.rejects(run(spawner, 'true', '/', { LONG: 'x'.repeat(200_000) }), { code: 'E2BIG' })
  await t.rejects(run(spawner, 'echo cut\0off'), 'a NUL byte does not make it another command')
  await t.rejects(run(spawner, 'true', '/\0off'))
  await t.rejects(run(spawner, 'true', '/', { CUT: 'cut\0off' }))
}

async function leavesNothing(t: Test, kind: SpawnerKind) {
  // What Node itself opens at the first process, and keeps, is no leak.
  const first = createSpawner(kind)
  await run(first, 'true')
  await first.close()
  const before = descriptors()
  const spawner = createSpawner(kind)
  for (let round = 0; round < 125; round++)
    await Promise.all(Array.from({ length: 8 }, () => run(spawner, 'echo x')))
  t.equal(zombies(), 0)
  // How many of its pipes are idle depends on the moment; when it is closed there is none.
  await spawner.close()
  await waitUntil('every descriptor is closed', () => descriptors() <= before)
}

const descriptors = (): number => readdirSync('/proc/self/fd').length

const SKIP = loadNativeSpawn() === null && 'it was not built here: there is no C compiler'

t.test('Node’s child_process', (t) => holds(t, createSpawner('node')))
t.test('posix_spawn', { skip: SKIP }, (t) => holds(t, createSpawner('native')))

t.test('Node’s leaves nothing behind', (t) => leavesNothing(t, 'node'))
t.test('posix_spawn leaves nothing behind', { skip: SKIP }, (t) => leavesNothing(t, 'native'))

t.test('neither takes the other’s processes for its own', { skip: SKIP }, async (t) => {
  const native = createSpawner('native')
  const node = createSpawner('node')
  t.teardown(() => Promise.all([native.close(), node.close()]))
  const codes = Array.from({ length: 60 }, (_, index) => index)
  const runs = codes.map((code) => run(code % 2 === 0 ? native : node, `exit ${code}`))
  t.same(
    (await Promise.all(runs)).map(({ exitCode }) => exitCode),
    codes,
  )
})

t.test('posix_spawn tells a real-time signal by its number', { skip: SKIP }, async (t) => {
  const spawner = createSpawner('native')
  t.teardown(() => spawner.close())
  t.match(await run(spawner, 'kill -37 $$'), { exitCode: null, signal: '37' })
})

t.test(
  'what the agent itself inherited is not for the commands of posix_spawn',
  { skip: SKIP },
  async (t) => {
    const program = `
    import { createSpawner } from ${JSON.stringify(SPAWNER)}
    const spawner = createSpawner('native')
    const onStdout = (chunk) => void process.stdout.write(chunk.toString())
    const options = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, onStdout, onStderr: onStdout }
    await (await spawner.start('[ -e /proc/$$/fd/40 ] && echo open || echo closed', options)).exit
    await spawner.close()
  `
    // Node sees to the first few itself.
    const own = openSync('/dev/null', 'r')
    t.teardown(() => closeSync(own))
    const stdio = Object.assign(Array(41).fill('ignore'), { 1: 'pipe', 2: 'inherit', 40: own })
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
      stdio,
    })
    t.equal(stdout, 'closed\n')
  },
)
