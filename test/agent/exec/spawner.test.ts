// The two ways to make a process are one to whoever runs a command.
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { loadNativeSpawn } from '../../../agent/exec/native-spawn.ts'
import { createSpawner, type Spawner } from '../../../agent/exec/spawner.ts'

const ENV = { PATH: '/usr/bin:/bin', MARK: 'a b' }

async function run(spawner: Spawner, command: string, cwd = '/') {
  const chunks: Buffer[] = []
  const started = await spawner.start(command, {
    cwd,
    env: ENV,
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

async function holds(t: Test, spawner: Spawner) {
  t.teardown(() => spawner.close())
  t.match(await run(spawner, 'exit 7'), { exitCode: 7, signal: null, running: false })
  t.match(await run(spawner, 'exit 143'), { exitCode: 143, signal: null })
  t.match(await run(spawner, 'kill -TERM $$'), { exitCode: null, signal: 'TERM' })
  t.match(await run(spawner, 'kill -KILL $$'), { exitCode: null, signal: 'KILL' })
  t.match(await run(spawner, 'echo "$0 $MARK $(pwd)"', '/tmp'), { text: 'sh a b /tmp\n' })
  t.match(await run(spawner, '-no-such-option'), { exitCode: 127 })
  t.match(await run(spawner, 'cat; echo oops >/dev/stderr'), { exitCode: 0, text: 'oops\n' })
  const own = openSync(import.meta.filename, 'r')
  t.notMatch((await run(spawner, 'ls -l /proc/self/fd')).text, /spawner\.test/, 'nothing of ours is open')
  closeSync(own)
  t.match(await run(spawner, 'trap "" PIPE; trap'), { text: /PIPE/ }, 'no signal is ignored from the start')
  const { pid, text } = await run(spawner, 'cut -d" " -f5,6 /proc/$$/stat')
  t.equal(text, `${pid} ${pid}\n`, 'leads a group and a session of its own')
  await t.rejects(run(spawner, 'true', '/no/such/folder'), { code: 'ENOENT' })
  await t.rejects(run(spawner, `: ${'x'.repeat(200_000)}`), { code: 'E2BIG' })

  const before = readdirSync('/proc/self/fd').length
  for (let round = 0; round < 25; round++)
    await Promise.all(Array.from({ length: 8 }, () => run(spawner, 'echo x')))
  t.equal(zombies(), 0)
  t.ok(readdirSync('/proc/self/fd').length <= before + 16, 'descriptors do not pile up')
}

t.test('Node’s child_process', (t) => holds(t, createSpawner(null)))

const native = loadNativeSpawn()
if (native === null)
  t.test('posix_spawn', { skip: 'it was not compiled here: there is no C compiler' }, () => undefined)
else t.test('posix_spawn', (t) => holds(t, createSpawner(native)))
