// Both kinds of spawners, posix_spawn and Node's child_process, behave alike, with the exceptions that createSpawner() names.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import t, { type Test } from 'tap'
import { createSpawner, type Spawner, type SpawnerKind } from '../../../agent/exec/spawner.ts'
import { skipWithoutSpawner as skip } from '../../support/native-parts.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SPAWNER = new URL('../../../agent/exec/spawner.ts', import.meta.url).href
const ENV = { PATH: '/usr/bin:/bin', VARIABLE: 'a b' }

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

/** Counts the children of this process that have exited and are not reaped. */
const countZombies = (): number =>
  readdirSync('/proc').filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' && Number(parent) === process.pid
    } catch {
      return false
    }
  }).length

/** Their default action does not terminate the process. */
const NON_TERMINATING = [
  'SIGCHLD',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGWINCH',
]
/** Second names of SIGABRT and SIGIO. */
const ALIASES = ['SIGIOT', 'SIGPOLL']

async function testBehaviour(t: Test, spawner: Spawner) {
  t.teardown(() => spawner.close())
  t.match(await run(spawner, 'exit 7'), { exitCode: 7, signal: null, running: false })
  t.match(await run(spawner, 'exit 143'), { exitCode: 143, signal: null })
  for (const [name, number] of Object.entries(constants.signals)) {
    if (NON_TERMINATING.includes(name) || ALIASES.includes(name)) continue
    const result = await run(spawner, `ulimit -c 0; kill -${number} $$`)
    t.match(result, { exitCode: null, signal: name.slice('SIG'.length), running: false }, name)
  }
  t.match(await run(spawner, 'echo "$0 $VARIABLE $(pwd)"', '/tmp'), { text: 'sh a b /tmp\n' })
  t.match(await run(spawner, '-no-such-option'), { exitCode: 127 })
  t.match(await run(spawner, 'cat; echo oops >&2'), { exitCode: 0, text: 'oops\n' })
  const fd = openSync(import.meta.filename, 'r')
  t.notMatch(
    (await run(spawner, 'ls -l /proc/self/fd')).text,
    /spawner\.test/,
    'inherits no descriptor of this process',
  )
  closeSync(fd)
  const signals = (await run(spawner, 'grep -E "Sig(Blk|Ign)" /proc/self/status')).text
  t.equal(signals, 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n')
  const { pid, text } = await run(spawner, 'cut -d" " -f5,6 /proc/$$/stat')
  t.equal(text, `${pid} ${pid}\n`, 'leads its own process group and session')
  await t.rejects(run(spawner, 'true', '/no/such/directory'), { code: 'ENOENT' })
  await t.rejects(run(spawner, 'true', import.meta.filename), {
    code: 'ENOTDIR',
    errno: -constants.errno.ENOTDIR,
  })
  await t.rejects(run(spawner, `: ${'x'.repeat(200_000)}`), { code: 'E2BIG' })
  await t.rejects(run(spawner, 'true', '/', { LONG: 'x'.repeat(200_000) }), { code: 'E2BIG' })
  await t.rejects(run(spawner, 'echo a\0b'), 'a NUL byte does not truncate the command')
  await t.rejects(run(spawner, 'true', '/\0b'))
  await t.rejects(run(spawner, 'true', '/', { VARIABLE: 'a\0b' }))
}

async function testLeaks(t: Test, kind: SpawnerKind) {
  // Node opens descriptors at its first spawn and keeps them.
  const first = createSpawner(kind)
  await run(first, 'true')
  first.close()
  const before = countDescriptors()
  const spawner = createSpawner(kind)
  t.teardown(() => spawner.close())
  for (let round = 0; round < 125; round++)
    await Promise.all(Array.from({ length: 8 }, () => run(spawner, 'echo x')))
  t.equal(countZombies(), 0)
  for (let round = 0; round < 20; round++) {
    await t.rejects(run(spawner, 'true', '/no/such/directory'))
    await t.rejects(run(spawner, `: ${'x'.repeat(200_000)}`))
  }
  await waitUntil('every descriptor is closed', () => countDescriptors() === before)
}

/** The agent stops: its other descriptors may get the numbers of the closed pipes before the commands exit. */
async function testClose(t: Test, spawner: Spawner) {
  const onChunk = () => t.fail('output after close()')
  const options = { cwd: '/', env: ENV, onStdout: onChunk, onStderr: onChunk }
  const commands = await Promise.all(
    Array.from({ length: 3 }, () => spawner.start('exec sleep 600', options)),
  )
  const exited = await spawner.start('sleep 600 &', options)
  await exited.exit
  spawner.close()
  spawner.close()
  const files = Array.from({ length: 10 }, () => openSync(import.meta.filename, 'r'))
  for (const { pid } of commands) process.kill(-pid, 'SIGKILL')
  for (const { exit } of commands) t.match(await exit, { signal: 'KILL' })
  process.kill(-exited.pid, 'SIGKILL')
  // closeSync() throws for a descriptor that the spawner has closed.
  for (const fd of files) closeSync(fd)
}

const countDescriptors = (): number => readdirSync('/proc/self/fd').length

t.test('runs commands with child_process', (t) => testBehaviour(t, createSpawner('node')))
t.test('runs commands with posix_spawn', { skip }, (t) => testBehaviour(t, createSpawner('native')))

t.test('child_process leaks neither zombies nor descriptors', (t) => testLeaks(t, 'node'))
t.test('posix_spawn leaks neither zombies nor descriptors', { skip }, (t) => testLeaks(t, 'native'))

t.test('child_process closes the outputs once', (t) => testClose(t, createSpawner('node')))
t.test('posix_spawn closes the outputs once', { skip }, (t) => testClose(t, createSpawner('native')))

t.test('reads a command with a Socket only when it runs longer', { skip }, async (t) => {
  const spawner = createSpawner('native')
  t.teardown(() => spawner.close())
  const countSockets = () => process.getActiveResourcesInfo().filter((type) => type === 'PipeWrap').length
  const before = countSockets()
  let stderr = ''
  // The first program waits for a reader, because a pipe holds less.
  const { pid, exit } = await spawner.start(
    'head -c 100000 /dev/zero; echo end >/dev/stderr; exec sleep 600',
    {
      cwd: '/',
      env: ENV,
      onStdout: () => undefined,
      onStderr: (chunk) => {
        stderr += chunk
      },
    },
  )
  t.equal(countSockets(), before, 'at the start')
  await waitUntil('the output is read', () => stderr === 'end\n')
  t.equal(countSockets(), before + 2, 'while the command runs')
  process.kill(pid, 'SIGKILL')
  t.match(await exit, { signal: 'KILL' })
  await waitUntil('the Sockets are closed', () => countSockets() === before)
})

t.test('two kinds of spawners get the exit codes of their own processes', { skip }, async (t) => {
  const native = createSpawner('native')
  const node = createSpawner('node')
  t.teardown(() => native.close())
  t.teardown(() => node.close())
  const codes = Array.from({ length: 60 }, (_, index) => index)
  const runs = codes.map((code) => run(code % 2 === 0 ? native : node, `exit ${code}`))
  t.same(
    (await Promise.all(runs)).map(({ exitCode }) => exitCode),
    codes,
  )
})

t.test('posix_spawn reports a real-time signal by number', { skip }, async (t) => {
  const spawner = createSpawner('native')
  t.teardown(() => spawner.close())
  t.match(await run(spawner, 'kill -37 $$'), { exitCode: null, signal: '37' })
})

t.test(
  'commands started with posix_spawn do not get descriptors that the agent inherited',
  { skip },
  async (t) => {
    const program = `
    import { createSpawner } from ${JSON.stringify(SPAWNER)}
    const spawner = createSpawner('native')
    const onStdout = (chunk) => void process.stdout.write(chunk.toString())
    const options = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, onStdout, onStderr: onStdout }
    await (await spawner.start('[ -e /proc/$$/fd/40 ] && echo open || echo closed', options)).exit
    spawner.close()
  `
    // A high number: Node itself makes the first few descriptors close-on-exec.
    const fd = openSync('/dev/null', 'r')
    t.teardown(() => closeSync(fd))
    const stdio = Object.assign(Array(41).fill('ignore'), { 1: 'pipe', 2: 'inherit', 40: fd })
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
      stdio,
    })
    t.equal(stdout, 'closed\n')
  },
)
