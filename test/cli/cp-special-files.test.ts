// box cp of FIFOs, sockets and devices: refused at once as a source, skipped inside a directory. Pipes of the shell work.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')
const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({ tree: { file: 'x' } })
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })

execFileSync('mkfifo', ['fifo', 'tree/fifo'], { cwd: localDir })
const server = createServer().listen(join(localDir, 'socket'))
await once(server, 'listening')
t.teardown(() => server.close())

t.test('refuses a FIFO, a socket and a device as the source', async (t) => {
  for (const path of ['fifo', 'socket', '/dev/null'])
    t.match(await cp(path, 'fig:'), { code: 1, stderr: new RegExp(`^box: ${path}: not a regular file`) })
  t.same(await readdir(homeDir), [])
  execFileSync('mkfifo', ['fifo'], { cwd: homeDir })
  coordinator.giveFiles('fig')
  t.match(await cp('fig:fifo', '.'), { code: 1, stderr: /^box: fig: .*neither a file nor a directory/ })
})

t.test('refuses a FIFO as the destination, and writes to a device', async (t) => {
  await writeFile(join(homeDir, 'file'), 'content')
  coordinator.giveFiles('fig')
  t.match(await cp('fig:file', 'fifo'), { code: 1, stderr: /^box: fifo: not a regular file/ })
  t.match(await cp('fig:file', '/dev/null'), { code: 0, stderr: '' })
})

t.test('skips them inside a directory, with a message', async (t) => {
  t.same(await cp('tree', 'fig:copy'), {
    code: 0,
    stdout: '',
    stderr: 'box: tree/fifo: skipped, not a regular file.\n',
  })
  t.same(await readdir(join(homeDir, 'copy')), ['file'])
  execFileSync('mkfifo', ['copy/one', 'copy/two'], { cwd: homeDir })
  coordinator.giveFiles('fig')
  await mkdir(join(localDir, 'empty'))
  t.same(await cp('fig:copy/.', 'empty'), {
    code: 0,
    stdout: '',
    stderr: 'box: skipped in fig:copy/.: FIFOs, sockets or devices (2).\n',
  })
  t.same(await readdir(join(localDir, 'empty')), ['file'])
  // The tar of a box archives them.
  const tar = execFileSync('tar', ['-C', localDir, '-c', 'tree'])
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/tree' }).end(tar)
  })
  t.match(await cp('fig:tree', 'down'), { code: 0, stderr: 'box: tree/fifo: skipped, not a regular file.\n' })
  t.same(await readdir(join(localDir, 'down')), ['file'])
})

/** Runs `command` with bash, in which box is the command. */
async function runInBash(command: string, onSpawn: (pid: number) => void = () => undefined) {
  const child = spawn('bash', ['-c', `box() { "${process.execPath}" "${MAIN}" "$@"; }; ${command}`], {
    cwd: localDir,
    env: { ...process.env, BOXWOOD_URL: `${coordinator.url}/api/v1`, BOXWOOD_API_KEY: coordinator.key },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const output: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (bytes) => {
      output[name] += bytes
    })
  onSpawn(child.pid ?? 0)
  const [code] = await once(child, 'close')
  return { code, ...output }
}

t.test('reads and writes the pipes that the shell passes', async (t) => {
  t.match(await runInBash('box cp <(printf substituted) fig:from-pipe'), { code: 0, stderr: '' })
  t.equal(await readFile(join(homeDir, 'from-pipe'), 'utf8'), 'substituted')
  t.match(await runInBash('printf piped | box cp /dev/stdin fig:from-stdin'), { code: 0, stderr: '' })
  t.equal(await readFile(join(homeDir, 'from-stdin'), 'utf8'), 'piped')
  t.match(await runInBash('box cp fig:from-pipe /dev/fd/1 | cat'), { code: 0, stdout: 'substituted' })
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  t.test(`${signal} ends a copy whose pipe is silent`, async (t) => {
    const first = coordinator.requests.length
    coordinator.failNextUpgrade('GET /v1/box/fig/exec/', (_, open) => {
      // The copy waits for its first byte. `exec`: the signal goes to box, not to bash.
      setImmediate(() => process.kill(child, signal))
      open()
    })
    let child = 0
    const command = `exec "${process.execPath}" "${MAIN}" cp <(exec sleep 100 2>/dev/null) fig:silent`
    const result = await runInBash(command, (pid) => {
      child = pid
    })
    // Also sleep, which bash has started.
    process.kill(-child, 'SIGKILL')
    t.match(result, { code: signal === 'SIGINT' ? 130 : 143, stderr: '' })
    const started = coordinator.requests.slice(first).filter(({ line }) => line === 'POST /v1/box/fig/exec')
    t.equal(started.length, 1)
    t.notOk((await readdir(homeDir)).includes('silent'))
  })
