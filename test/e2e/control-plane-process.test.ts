// The coordinator process: its output, files, signal handling and start-up errors.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { databaseEnv } from '../support/database-env.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

const MAIN = join(import.meta.dirname, '../../coordinator/server/main.ts')

const createDataDir = (t: Test): string => createTempDir(t, 'main')

/** Runs main.ts. Suspends its boxes after the test. */
function run(t: Test, dir: string, env: Record<string, string> = {}, stderr: 'pipe' | number = 'pipe') {
  const child: ChildProcess = spawn(process.execPath, [MAIN], {
    env: {
      ...process.env,
      ...databaseEnv(dir),
      ...{ BOXWOOD_DATA: dir, BOXWOOD_LISTEN: '127.0.0.1:0', BOXWOOD_LOG: 'warn' },
      ...env,
    },
    stdio: ['ignore', 'pipe', stderr],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
    await exited
  })
  const waitForOutput = (pattern: RegExp): Promise<string> =>
    waitUntil(`the coordinator has printed ${pattern}`, () => {
      const match = pattern.exec(output.stdout)
      if (match) return match[1] ?? match[0]
      if (child.exitCode !== null) throw new Error(`exited with ${child.exitCode}`)
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${output.stdout}${output.stderr}`)
    })
  return { child, output, exited, waitForOutput }
}

const get = async (url: string, dir: string, path: string) =>
  (
    await fetch(url + path, {
      headers: { authorization: `Bearer ${readFileSync(join(dir, 'owner.key'), 'utf8').trim()}` },
    })
  ).json()

t.test('prints a startup banner, and keeps the boxes running on SIGTERM', async (t) => {
  const dir = createDataDir(t)
  const { child, output, exited, waitForOutput } = run(t, dir)
  const name = await waitForOutput(/box exec (\S+) -- uname -a/)
  const url = await waitForOutput(/listens on (http:\S+)\.\n/)
  t.match(output.stdout, join(dir, 'owner.key'))
  t.match(output.stdout, /isolation level \w+/)
  t.equal(statSync(join(dir, 'owner.key')).mode & 0o777, 0o600)
  t.equal(statSync(dir).mode & 0o066, 0)
  t.match(JSON.parse(readFileSync(join(dir, 'coordinator.json'), 'utf8')), { url, pid: child.pid })
  const { boxes } = (await get(url, dir, '/api/v1/boxes')) as { boxes: { hostname: string }[] }
  t.same(
    boxes.map(({ hostname }) => hostname),
    [name],
  )

  await t.test('rejects a second coordinator on the same data', async (t) => {
    const second = run(t, dir)
    t.equal(await second.exited, 1)
    t.equal(
      second.output.stderr.replace(/`.*`/, '`COMMAND`'),
      `Another coordinator uses this data directory: ${url} (pid ${child.pid}). Use it, stop it with \`COMMAND\`, or set another directory in BOXWOOD_DATA.\n`,
    )
    t.match(second.output.stderr, `BOXWOOD_DATA=${dir} `)
  })

  await t.test('rejects a second coordinator while coordinator.json is missing or damaged', async (t) => {
    const file = join(dir, 'coordinator.json')
    const content = readFileSync(file)
    for (const damage of [() => rmSync(file), () => writeFileSync(file, '{"pid":')]) {
      damage()
      const second = run(t, dir)
      t.equal(await second.exited, 1)
      t.match(
        second.output.stderr,
        /^Another coordinator uses this data directory: .*boxwood\.db is locked.*\n$/,
      )
    }
    writeFileSync(file, content)
  })

  child.kill('SIGTERM')
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  t.match(output.stdout, 'The boxes keep running')
  t.notOk(existsSync(join(dir, 'coordinator.json')))

  const restarted = run(t, dir)
  t.equal(await restarted.waitForOutput(/box exec (\S+) -- uname -a/), name, 'the box exists after a restart')
  restarted.child.kill('SIGINT')
  restarted.child.kill('SIGINT')
  t.equal(await restarted.exited, 0, 'a signal forwarded by npm does not count as a second Ctrl-C')
  t.match(restarted.output.stdout, 'Suspending the boxes')
})

t.test('serves requests and stops while its log cannot be written', async (t) => {
  const dir = createDataDir(t)
  // Every write to /dev/full fails with ENOSPC.
  const { child, exited, waitForOutput } = run(t, dir, { BOXWOOD_LOG: 'trace' }, openSync('/dev/full', 'w'))
  const url = await waitForOutput(/listens on (http:\S+)\.\n/)
  t.match(await get(url, dir, '/api/v1/boxes'), { boxes: [{}] })
  child.kill('SIGINT')
  t.equal(await exited, 0)
})

t.test('reports all invalid variables and exits with 2', async (t) => {
  const { exited, output } = run(t, createDataDir(t), {
    BOXWOOD_LISTEN: 'here',
    BOXWOOD_SNAPSHOT_LIMIT: '-1',
  })
  t.equal(await exited, 2)
  t.match(output.stderr, /^BOXWOOD_LISTEN must .*\nBOXWOOD_SNAPSHOT_LIMIT must .*\n$/)
})

t.test('reports a port in use in one sentence', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const { exited, output } = run(t, createDataDir(t), { BOXWOOD_LISTEN: `127.0.0.1:${port}` })
  t.equal(await exited, 1)
  t.match(
    output.stderr,
    new RegExp(`^The coordinator cannot listen on 127.0.0.1:${port}: .*BOXWOOD_LISTEN.\\n$`),
  )
})

t.test('reports an unusable data directory in one line', async (t) => {
  const file = join(createDataDir(t), 'file')
  writeFileSync(file, '')
  const { exited, output } = run(t, join(file, 'data'))
  t.equal(await exited, 1)
  t.match(output.stderr, /^The data directory .* cannot be used: EEXIST: file already exists.*\n$/)
})
